/* Modules of a kernel in a guest's memory: struct module in the layouts that it had. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/fake_memory.h"

enum {
	FAKE_MODULE_BYTES = 0x5000, /* of addresses, for each; its code is the first page */
	FAKE_MODULE_ID = 0xa0,      /* each byte of the first one's build id; the next has 0xa1 */
};

/** By the first version of Linux. */
enum fake_module_layout { FAKE_MODULE_5_2, FAKE_MODULE_6_4, FAKE_MODULE_6_13, FAKE_MODULE_6_14 };

/**
 * Put a list of modules "module_0", "module_1" and so on, with two symbols each, at `address` and
 * every FAKE_MODULE_BYTES from there.
 *
 * @head  where the list's head is, two words that are mapped already; the list is newest first
 *
 * Returns the first module's struct, followed by its symbols in the next page, in `memory->data`.
 */
uint8_t *fake_modules_put(struct fake_memory *memory, uint64_t head, uint64_t address, size_t count,
			  enum fake_module_layout layout);
