/* What /proc/kcore of a guest would be if it had code and the table of jump labels only, made of
 * the guest's memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "decode/base/text.h"
#include "guest/code_ranges.h"

struct guest_kernel;

struct memory_kcore {
	struct text head; /* KCORE_HEAD_BYTES: headers and VMCOREINFO */
	struct code_ranges code;
};

/**
 * Find the table, and what is executable: the text of the kernel, and all that is mapped after its
 * image, which is modules and what the kernel makes for itself.
 *
 * @ret  zeroed before; release with memory_kcore_free(), also after a failure
 *
 * Returns 0, -PTVM_BAD_INPUT (no kernel text, or too many pieces), -PTVM_NO_MEMORY or an error of
 * the memory.
 */
int memory_kcore_make(struct guest_kernel *kernel, struct memory_kcore *ret,
		      struct ptvm_error *error);

/**
 * Read at most `size` bytes at `offset`; other data, as what is not executable any more, is 0.
 * Returns their number, 0 at the end of the file, or an error of the memory.
 */
int memory_kcore_read(const struct memory_kcore *kcore, struct guest_kernel *kernel,
		      uint64_t offset, void *data, size_t size, struct ptvm_error *error);

/** Free everything; accepts zeroes. */
void memory_kcore_free(struct memory_kcore *kcore);
