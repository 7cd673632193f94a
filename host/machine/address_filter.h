/* Address filters as users write them, "filter __schedule" or "tracestop 0x1000/0x20": the trace
 * is on only in some of the kernel's code, or stops at it. */
#pragma once

#include <stddef.h>

#include "decode/base/error.h"

/**
 * Translate filters to the kernel's words.
 *
 * A filter is `filter` or `tracestop`, where it begins (a number, or a symbol of the host's
 * kernel), and optionally `/` and how many bytes it is long, or where it ends: a number or a
 * symbol, whose own code is part of it. Without that a symbol is meant whole. Several are separated
 * by commas. Addresses of a guest's kernel are given as numbers: the CPU does not tell host and
 * guests apart.
 *
 * @kallsyms  file with the host's symbols, read when a symbol is named
 * @text      the result, in `size` bytes
 *
 * Returns 0, -PTVM_BAD_USAGE, -PTVM_NOT_FOUND (no such symbol, or no symbols), or -PTVM_NO_MEMORY.
 */
int address_filter_translate(const char *filters, const char *kallsyms, char *text, size_t size,
			     struct ptvm_error *error);
