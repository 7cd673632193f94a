/* The symbols that a guest's kernel keeps of a module, as /proc/kallsyms shows them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

struct listed_module;
struct page_walk;
struct text;

enum {
	MODULE_SYMBOLS = 1 << 20,     /* of one module; those of one with more are left out */
	MODULE_SYMBOLS_ALL = 4 << 20, /* of all modules; more are not believed */
	MODULE_SYMBOLS_NAME_BYTES = 16 << 20,
};

/**
 * Append the lines of a module: none where its symbols are not known, or make no sense. All types
 * are in lower case: which symbols are exported is not looked for.
 *
 * @most  bytes that the text may have; it ends with the first line beyond them
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int module_symbols_print(struct page_walk *walk, const struct listed_module *module, size_t most,
			 struct text *text);
