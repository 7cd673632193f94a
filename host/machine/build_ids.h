/* Build ids of what can run while recording: kernels, modules, the vDSO, programs and libraries. By
 * them a reader on another machine can tell whether its own copy of a file is the same. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "decode/perf/build_id.h"
#include "host/machine/roots.h"

struct guest_modules;

enum { BUILD_IDS_MAX = 4096 }; /* files that are told of; more are left out */

/** As perf has it: cpumode 1 kernel, 2 user, 4 kernel of a guest. */
struct build_ids_entry {
	struct build_id id;
	uint16_t cpumode;
	pid_t pid; /* of the guest's process; -1: the host */
	char *name;
};

/** Zero-initialise before use. */
struct build_ids {
	struct build_ids_entry *items;
	size_t count, room;
};

/** Add the host's kernel, its modules and the vDSO. Returns 0 or -PTVM_NO_MEMORY, as all here. */
int build_ids_add_host(struct build_ids *ids, const struct roots *roots);

/** Add the programs and libraries that a process has mapped to run. */
int build_ids_add_process(struct build_ids *ids, const struct roots *roots, pid_t pid);

/**
 * Add the kernel of a guest.
 *
 * @text  its build id in hexadecimal, as guest_facts has it; what is none is left out
 */
int build_ids_add_guest(struct build_ids *ids, pid_t pid, const char *text);

/** Add its modules, those whose build ids are known. */
int build_ids_add_guest_modules(struct build_ids *ids, pid_t pid,
				const struct guest_modules *modules);

/**
 * Make perf's feature section of them.
 *
 * @ret  free() it
 */
int build_ids_section(const struct build_ids *ids, void **ret, size_t *ret_size);

/** Accepts zeroes. */
void build_ids_free(struct build_ids *ids);
