/* The most common instructions of 64-bit code, nine of ten that run, are read with a table of their
 * first bytes. That gives the same result as the disassembler in a tenth of its time. All others
 * are left to the disassembler (x86_insn.c). */
#pragma once

#include <stdbool.h>

#include "decode/code/x86_insn.h"

/** As insn_read() with 64 bits; false for all that is not common, or does not fit into `size`. */
bool x86_common_read(const uint8_t *bytes, size_t size, uint64_t ip, struct insn *ret);
