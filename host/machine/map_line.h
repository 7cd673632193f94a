/* The lines of /proc/PID/maps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "host/machine/roots.h"

enum { MAP_CAN_RUN = 4 }; /* of `protection` */

struct map_line {
	uint64_t from, to, offset, inode; /* from <= to */
	uint32_t major, minor;
	uint32_t protection, flags; /* as for mmap(2) */
	const char *name;           /* shorter than PATH_MAX; "//anon" where it has none */
};

struct map_lines {
	FILE *file;
	char *line;
	size_t room;
};

/**
 * Open those of a process; map_lines_close() in any case.
 * Returns 0 or -PTVM_SYSTEM.
 */
int map_lines_open(const struct roots *roots, pid_t pid, struct map_lines *ret,
		   struct ptvm_error *error);

/**
 * The next one that makes sense; false after the last.
 *
 * @ret  until the next call
 */
bool map_lines_next(struct map_lines *lines, struct map_line *ret);

/** Close them. */
void map_lines_close(struct map_lines *lines);

/**
 * Read one; false where it makes no sense.
 *
 * @line  `ret` points into it; a newline at its end is cut off
 */
bool map_line_read(char *line, struct map_line *ret);
