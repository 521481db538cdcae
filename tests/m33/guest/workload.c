#include "workload.h"

#include <stddef.h>

static uint32_t seed;

static uint32_t next_random(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static uint16_t crc16(uint16_t crc, uint32_t value, int bits) {
    for (int i = 0; i < bits; i++) {
        const int carry = (crc ^ (value & 1)) & 1;
        crc >>= 1;
        if (carry) crc ^= 0xA001;
        value >>= 1;
    }
    return crc;
}

/* --- lists: build, reverse, find, merge sort ------------------------------------------------------------------------- */

struct node {
    struct node *next;
    int16_t key;
    uint16_t data;
};

#define NODES 64
static struct node nodes[NODES];

static struct node *reverse(struct node *list) {
    struct node *done = NULL;
    while (list) {
        struct node *next = list->next;
        list->next = done;
        done = list;
        list = next;
    }
    return done;
}

static struct node *merge(struct node *a, struct node *b) {
    struct node head = {NULL, 0, 0};
    struct node *tail = &head;
    while (a && b) {
        struct node **smaller = a->key <= b->key ? &a : &b;
        tail->next = *smaller;
        tail = *smaller;
        *smaller = (*smaller)->next;
    }
    tail->next = a ? a : b;
    return head.next;
}

static struct node *sort(struct node *list) {
    if (!list || !list->next) return list;
    struct node *slow = list;
    for (struct node *fast = list->next; fast && fast->next; fast = fast->next->next) slow = slow->next;
    struct node *second = slow->next;
    slow->next = NULL;
    return merge(sort(list), sort(second));
}

static uint16_t lists(uint16_t crc) {
    struct node *list = NULL;
    for (int i = 0; i < NODES; i++) {
        nodes[i].key = (int16_t)(next_random() & 0x3FF);
        nodes[i].data = (uint16_t)next_random();
        nodes[i].next = list;
        list = &nodes[i];
    }
    list = reverse(sort(reverse(list)));
    for (int wanted = 0; wanted < 16; wanted++) {
        const struct node *n = list;
        while (n && (n->key & 15) != wanted) n = n->next;
        crc = crc16(crc, n ? n->data : 0xFFFF, 16);
    }
    for (const struct node *n = list; n; n = n->next) crc = crc16(crc, (uint16_t)n->key, 16);
    return crc;
}

/* --- matrices -------------------------------------------------------------------------------------------------------- */

#define SIZE 12
static int16_t left[SIZE][SIZE], right[SIZE][SIZE];
static int32_t product[SIZE][SIZE];

static uint16_t matrices(uint16_t crc) {
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            left[i][j] = (int16_t)(next_random() & 0xFF);
            right[i][j] = (int16_t)((next_random() & 0xFF) - 128);
        }
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            int32_t sum = 0;
            for (int k = 0; k < SIZE; k++) sum += left[i][k] * right[k][j];
            product[i][j] = sum;
        }
    int64_t total = 0;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            const int32_t value = product[i][j];
            total += (int64_t)value * (int32_t)(((uint32_t)value >> 3) & 0x7F);
            if ((value & 7) == 3) product[i][j] = value / (j + 3);
            crc = crc16(crc, (uint32_t)product[i][j] >> 2, 8);
        }
    return crc16(crc, (uint32_t)total ^ (uint32_t)(total >> 32), 32);
}

/* --- a state machine over text: numbers of several kinds -------------------------------------------------------------- */

enum state { START, INTEGER, FRACTION, EXPONENT, SIGNED_EXPONENT, DONE, BAD, STATES };

static enum state step(enum state s, char c) {
    switch (s) {
        case START: return c == '+' || c == '-' || (c >= '0' && c <= '9') ? INTEGER : c == '.' ? FRACTION : BAD;
        case INTEGER: return c == '.' ? FRACTION : c == ',' ? DONE : c >= '0' && c <= '9' ? INTEGER : BAD;
        case FRACTION: return c == 'e' || c == 'E' ? EXPONENT : c == ',' ? DONE : c >= '0' && c <= '9' ? FRACTION : BAD;
        case EXPONENT: return c == '+' || c == '-' ? SIGNED_EXPONENT : BAD;
        case SIGNED_EXPONENT: return c == ',' ? DONE : c >= '0' && c <= '9' ? SIGNED_EXPONENT : BAD;
        default: return c == ',' ? START : s == DONE ? START : BAD;
    }
}

static char text[160];

static uint16_t machine(uint16_t crc) {
    static const char *const pieces[] = {"5012,", "1.5e+3,", "-.75,", "T0.3e-1F,", "+110.700,", "12e4,", "-87.e-32,", ".1,"};
    size_t length = 0;
    while (length < sizeof text - 16)
        for (const char *p = pieces[next_random() & 7]; *p; p++) text[length++] = *p;
    text[length] = 0;
    uint32_t seen[STATES] = {0};
    enum state s = START;
    for (size_t i = 0; i < length; i++) {
        s = step(s, text[i]);
        seen[s]++;
        if (s == DONE) s = START;
        if (s == BAD && text[i] == ',') s = START;
    }
    for (int i = 0; i < STATES; i++) crc = crc16(crc, seen[i], 16);
    return crc;
}

/* --- floats: a filter and its quantisation ---------------------------------------------------------------------------- */

static uint16_t filter(uint16_t crc) {
    float y1 = 0.0f, y2 = 0.0f;
    for (int i = 0; i < 64; i++) {
        const float x = (float)(int32_t)(next_random() & 0xFFF) * 0.25f - 512.0f;
        const float y = x * 0.0625f + y1 * 1.5f - y2 * 0.640625f;
        y2 = y1;
        y1 = y;
        int32_t q = (int32_t)(y / 12.5f);
        if (q > 127) q = 127;
        if (q < -128) q = -128;
        crc = crc16(crc, (uint32_t)q, 8);
    }
    return crc;
}

uint32_t workload_run(uint32_t iterations) {
    uint16_t crc = 0xFFFF;
    uint32_t total = 0;
    seed = 12345;
    for (uint32_t i = 0; i < iterations; i++) {
        crc = lists(crc);
        crc = matrices(crc);
        crc = machine(crc);
        crc = filter(crc);
        total = (total << 1 | total >> 31) ^ crc;
    }
    return total;
}
