/* Files of a guest's kernel made of its memory, with no help of the guest: /proc/kallsyms,
 * /proc/modules, /proc/kcore (code only), and two that tell which kernel and which boot it is. */
#pragma once

#include <stddef.h>

#include "guest/channel.h"

struct guest_memory;
struct page_root;

/**
 * Find the guest's kernel; see guest_kernel_find(), also for the parameters and errors.
 *
 * @memory  its context is used until channel_free()
 * @ret     release with channel_free()
 */
int channel_memory_new(const struct guest_memory *memory, const struct page_root *roots,
		       size_t count, struct channel **ret, struct ptvm_error *error);
