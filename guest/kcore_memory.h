/* The physical memory of a machine through its own /proc/kcore, which has the kernel's map of all
 * RAM, and says where in RAM its segments are (fs/proc/kcore.c, get_kcore_size() and what fills in
 * the headers; since Linux 4.12). */
#pragma once

#include "guest/guest_memory.h"

struct channel;
struct kcore_head;

/** Both are borrowed; /proc/kcore is open in the channel while memory is read. */
struct kcore_memory {
	struct channel *channel;
	const struct kcore_head *head;
};

/** As struct guest_memory has it; `context` is a struct kcore_memory. */
int kcore_memory_read(void *context, uint64_t address, void *data, size_t size,
		      struct ptvm_error *error);
