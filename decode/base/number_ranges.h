/* Lists of numbers and ranges: of CPUs, threads, virtual CPUs, VMCS. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/error.h"

enum { NUMBER_RANGES_MAX = 64 };

/** A list such as 0,2-3. */
struct number_ranges {
	struct number_range {
		int64_t from, to;
	} items[NUMBER_RANGES_MAX];
	unsigned count; /* 0: all */
};

/**
 * Parse a list such as 0,2-3, of decimal or 0x hexadecimal numbers.
 *
 * @option  whose argument it is, for messages
 *
 * Returns 0 or -PTVM_BAD_USAGE.
 */
int number_ranges_parse(const char *option, const char *text, struct number_ranges *ret,
			struct ptvm_error *error);

static inline bool number_ranges_has(const struct number_ranges *ranges, int64_t number)
{
	for (unsigned i = 0; i < ranges->count; i++)
		if (number >= ranges->items[i].from && number <= ranges->items[i].to)
			return true;
	return !ranges->count;
}
