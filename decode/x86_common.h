/* The most common instructions of 64-bit code, by a table of their first bytes: nine of ten, in a
 * tenth of the time that the disassembler takes, with the same result. Anything else is left to the
 * disassembler (x86_insn.c). */
#pragma once

#include <stdbool.h>

#include "decode/x86_insn.h"

/** As insn_read() with 64 bits; false for all that is not common, or does not fit into `size`. */
bool x86_common_read(const uint8_t *bytes, size_t size, uint64_t ip, struct insn *ret);
