/* A line of /proc/PID/maps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MAP_CAN_RUN = 4 }; /* of `protection` */

struct map_line {
	uint64_t from, to, offset, inode; /* from <= to */
	uint32_t major, minor;
	uint32_t protection, flags; /* as for mmap(2) */
	const char *name;           /* shorter than PATH_MAX; "//anon" where it has none */
};

/**
 * Read it; false where it makes no sense.
 *
 * @line  `ret` points into it; a newline at its end is cut off
 */
bool map_line_read(char *line, struct map_line *ret);
