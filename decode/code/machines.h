/* All machines of a recording: the host and its guests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

struct machine;
struct perf_data;

/** Files the user names; NULL where not given. Paths are borrowed for the call. */
struct machine_options {
	const char *kallsyms, *vmlinux, *kcore; /* of the host: instead of the recording's */
	const char *guest_kallsyms, *guest_modules, *guest_vmlinux, *guest_kcore, *guest_mount;
	const char *symfs;        /* look up files below this directory; "" as they are */
	bool keep_mangled;        /* names of C++ and Rust symbols as they are in files */
	const char *build_id_dir; /* cache of files by build id; NULL: ~/.debug */
};

/** More guests than a host runs. A made-up recording could name any number, and each takes memory.
 */
enum { MACHINES_GUESTS_MAX = 4096 };

/** Zeroes are none. */
struct machines {
	struct machine *host;
	/* By machine pid, the default guest (pid 0) first if there is one. */
	struct machine **guests;
	size_t guest_count, guest_room;
	bool has_more_guests; /* than MACHINES_GUESTS_MAX: these are left out */
	bool one_for_all; /* guests run the host's code: it was given by hand, for whoever runs it
			   */
};

/**
 * Load what the recording and the options know of every machine: kernels from kcore, kallsyms and
 * modules, or from vmlinux; the maps of the host's processes from MMAP records, and their files as
 * perf finds them, by path and build id; changes in time from TEXT_POKE, KSYMBOL and BPF records.
 * A file that is missing or damaged leaves less known and a note (machines_note()), but is no
 * failure. `data` must outlive the result.
 * Returns 0 or -PTVM_NO_MEMORY; -PTVM_SYSTEM or -PTVM_BAD_INPUT only for a file that the user
 * named and that cannot be used, or is not there.
 */
int machines_load(const struct perf_data *data, const struct machine_options *options,
		  struct machines *ret, struct ptvm_error *error);

/** Release everything; accepts zeroes. */
void machines_free(struct machines *machines);

/** Go through all machines, the host first: the next one, or NULL behind the last. `next` is 0 for
 * the first call, and counts them. */
static inline struct machine *machines_next(const struct machines *machines, size_t *next)
{
	size_t number = *next || machines->host ? *next : 1;

	*next = number + 1;
	if (!number)
		return machines->host;
	return number <= machines->guest_count ? machines->guests[number - 1] : NULL;
}

/** The guest that runs in process `pid` of the host: by machine pid, else the default guest; where
 * the process is not known (0 or below), the only guest; NULL when there is none. */
struct machine *machines_guest(const struct machines *machines, int32_t pid);

/** Remember that a guest ran of which nothing is known, for machines_note_files(). */
void machines_miss_guest(const struct machines *machines);

/** Add the notes about files: those that were asked for and are not there, in the order of the
 * recording, and those with pages that could not be read (lost_pages.h). To be called once, when
 * everything has been read. */
void machines_note_files(const struct machines *machines);

/** Note `index`: a warning of one line, without a newline. NULL past the last. More may come while
 * code is looked up. */
const char *machines_note(const struct machines *machines, size_t index);
