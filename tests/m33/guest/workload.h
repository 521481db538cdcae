/* A CoreMark-like load of our own: linked lists, matrices, a text state machine, CRC, sorting, float filters. The same C runs
 * on the host, whose result is the expected one. */
#pragma once

#include <stdint.h>

uint32_t workload_run(uint32_t iterations); /* one checksum over everything */
