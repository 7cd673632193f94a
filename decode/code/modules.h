/* The text of /proc/modules -> modules: "NAME SIZE REFERENCES USERS STATE ADDRESS". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/arena.h"
#include "decode/base/error.h"

struct module {
	uint64_t start, end; /* end exclusive */
	const char *name;    /* "[kvm]", as perf prints it */
};

struct modules {
	struct module *items; /* sorted by start */
	size_t count, room;
	struct arena names;
};

/**
 * Read modules from a text in memory; lines that are none of /proc/modules' or have no address
 * are skipped. `ret` is appended to and sorted. Returns 0 or -PTVM_NO_MEMORY.
 */
int modules_parse(const char *text, size_t size, struct modules *ret);

/** Read a modules file. Returns 0, -PTVM_SYSTEM, -PTVM_BAD_INPUT (also where there is text, but no
 * module) or -PTVM_NO_MEMORY. */
int modules_load(const char *path, struct modules *ret, struct ptvm_error *error);

/** Free everything. */
void modules_free(struct modules *modules);
