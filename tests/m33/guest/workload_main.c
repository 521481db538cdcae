#include "semihosting.h"
#include "workload.h"

int main(void) {
    print_hex("checksum", workload_run(argument_number(20)));
    return 0;
}
