/* Numbers in messages. */
#pragma once

#include <stdint.h>

/** The ending of a noun after a number: "1 record", but "0 records". */
static inline const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}
