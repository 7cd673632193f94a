/* The text of /proc/kallsyms -> symbols. A line is "ADDRESS TYPE NAME", for a module's symbol
 * followed by a tab and "[MODULE]". Kernel symbols come sorted, those of modules do not. */
#pragma once

#include <stddef.h>

#include "decode/base/error.h"
#include "decode/code/symbols.h"

/**
 * Read symbols from a text in memory, those that perf keeps (types t, w, d, b in either case).
 *
 * @text   `size` bytes; ends of names are overwritten with NUL, and the symbols point into it, so
 *         it must live as long as `ret`
 * @ret    appended to; not yet finished
 *
 * A line that is none of kallsyms' is counted and skipped. Returns the number of such lines (at
 * most INT_MAX), or -PTVM_NO_MEMORY.
 */
int kallsyms_parse(char *text, size_t size, struct symbols *ret);

/**
 * Read a kallsyms file into `ret` (whose arena holds the text) and finish the table.
 * Returns 0, -PTVM_SYSTEM, -PTVM_BAD_INPUT (no symbol in it, or too large) or -PTVM_NO_MEMORY.
 */
int kallsyms_load(const char *path, struct symbols *ret, struct ptvm_error *error);
