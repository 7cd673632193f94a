/* What has changed in a kernel's code: the pages of a later copy of kcore that differ from an
 * earlier one, in a file of their own. */
#pragma once

#include <stdint.h>

#include "decode/base/error.h"

/** Counts of pages. */
struct kcore_changes {
	uint64_t changed;  /* have other bytes */
	uint64_t added;    /* were not there */
	uint64_t gone;     /* are not there any more */
	uint64_t left_out; /* of those changed and added: not written, they lie too scattered */
};

/**
 * Compare two copies and, if there is any such page, write those of `after` that changed or were
 * added.
 *
 * @before, after  directories with a file kcore
 * @path           of the file to write, which must not be there
 *
 * Returns 0, -PTVM_BAD_INPUT, -PTVM_SYSTEM or -PTVM_NO_MEMORY.
 */
int kcore_changes_write(const char *before, const char *after, const char *path,
			struct kcore_changes *ret, struct ptvm_error *error);
