/* The beginning of a live /proc/kcore: which addresses are where in the file, and what the kernel
 * tells crash dumps about itself. */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/base/error.h"
#include "guest/vmcoreinfo.h"

enum { KCORE_HEAD_BYTES = 64 << 10 /* all that is looked at */ };

struct kcore_segment {
	uint64_t address, offset, size;
	uint64_t physical; /* where it is in RAM; UINT64_MAX: its pages lie anywhere */
};

struct kcore_head {
	struct {
		struct kcore_segment *items;
		size_t count, room;
	} segments;
	char vmcoreinfo[VMCOREINFO_BYTES + 1]; /* empty: none */
};

/**
 * Read it.
 *
 * @bytes  the first KCORE_HEAD_BYTES of the file, or all where it is smaller
 * @ret    release with kcore_head_free(), also after a failure
 *
 * Returns 0, -PTVM_BAD_INPUT (not a core file of x86-64) or -PTVM_NO_MEMORY.
 */
int kcore_head_read(struct bytes bytes, struct kcore_head *ret, struct ptvm_error *error);

/** The header of such a file with `count` program headers behind it. */
Elf64_Ehdr kcore_head_make(size_t count);

/** Free everything. */
void kcore_head_free(struct kcore_head *head);
