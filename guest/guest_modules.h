/* What is known of a guest's kernel modules beside where they are: their files, and build ids. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "decode/base/arena.h"
#include "decode/base/error.h"
#include "decode/perf/build_id.h"

/** Below /sys/module/NAME. */
#define GUEST_MODULES_ID_FILE "notes/.note.gnu.build-id"

struct channel;
struct modules;

enum {
	GUEST_MODULES_DEP_BYTES = 8 << 20,   /* of modules.dep, more is not read */
	GUEST_MODULES_FILES_BYTES = 4 << 20, /* nor more of what programs print of /sys/module */
	GUEST_MODULES_SECTIONS = 32,         /* of each module */
	GUEST_MODULES_SECONDS = 2,           /* for files of /sys/module, one by one */
};

/** A part of a module: of its code or data, without the tables that the kernel keeps of it. */
struct guest_section {
	const char *name; /* as ".text" */
	uint64_t address;
};

struct guest_module {
	const char *name;   /* as /proc/modules has it */
	uint64_t start;     /* the address there */
	const char *path;   /* as "/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko"; NULL: not known */
	struct build_id id; /* size 0: not known */
	struct guest_sections {
		struct guest_section *items; /* by address */
		size_t count, room;
	} sections; /* none: not known */
};

/** Zero-initialise before use. */
struct guest_modules {
	struct guest_module *items; /* sorted by name */
	size_t count;
	struct arena arena;
};

/** Whether a module or a section can have this name of `size` bytes, up to 63 of them. A guest can
 * write anything into its files. */
bool guest_modules_is_name(const char *text, size_t size);

/**
 * Take over the names of modules, those that can be ones; nothing else is known then.
 * Returns 0 or -PTVM_NO_MEMORY; guest_modules_free() in any case.
 */
int guest_modules_name(const struct modules *modules, struct guest_modules *ret);

/**
 * Find paths in the text of modules.dep, of which each line begins with one and a colon. Only paths
 * below /lib/modules count: what a guest says is not to lead elsewhere.
 *
 * @release  of the kernel; paths that are not absolute are below its directory
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int guest_modules_find_paths(const char *text, size_t size, const char *release,
			     struct guest_modules *modules);

/**
 * Take build ids and sections from files below /sys/module, as head(1) prints several: each after a
 * line "==> PATH <==".
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int guest_modules_take_files(const char *text, size_t size, struct guest_modules *modules);

/**
 * Ask a guest for all of it: in /sys/module where files are opened fast; where programs can be run,
 * by one; else only for build ids, as many as can be had in some seconds. What cannot be had is
 * left empty. Returns 0 or -PTVM_NO_MEMORY; guest_modules_free() in any case.
 */
int guest_modules_read(struct channel *channel, const struct modules *loaded, const char *release,
		       struct guest_modules *ret);

/** The module of this name, or NULL. O(log n). */
const struct guest_module *guest_modules_find(const struct guest_modules *modules,
					      const char *name);

/** As the recording has it for "module_files". Returns NULL where memory is out. */
json_t *guest_modules_json(const struct guest_modules *modules);

/** Accepts zeroes. */
void guest_modules_free(struct guest_modules *modules);
