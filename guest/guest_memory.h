/* A guest's physical memory, as somebody reads it who needs no help of the guest. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

struct guest_memory {
	/**
	 * Read `size` bytes from the guest-physical `address` on.
	 * Returns 0, -PTVM_NOT_FOUND (not all of it is memory; no story is told of it) or an error.
	 */
	int (*read)(void *context, uint64_t address, void *data, size_t size,
		    struct ptvm_error *error);
	void *context;
};
