/* What identifies the kernel that was copied, and where each fact is from. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

struct channel;
struct kcore_head;

/** A value, and where it is from; both empty where nobody knows. */
struct guest_fact {
	char value[128]; /* printable ASCII */
	const char *from;
};

struct guest_facts {
	struct guest_fact release;      /* "6.1.0-25-amd64" */
	struct guest_fact build_id;     /* in hexadecimal */
	struct guest_fact kaslr_offset; /* in hexadecimal, after 0x */
	struct guest_fact boot_time;    /* seconds since 1970, by the guest's clock */
	struct guest_fact boot_id;      /* another one for each boot */
};

/**
 * Ask for all of them. What cannot be had is left empty: none of them is needed.
 *
 * @kernel_start  the address of _stext
 */
void guest_facts_read(struct channel *channel, const struct kcore_head *head, uint64_t kernel_start,
		      struct guest_facts *ret);
