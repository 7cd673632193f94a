/* The kernel of one machine in a recording: kcore_dir for the host, kcore_dir__PID for a guest,
 * with kcore, kallsyms and modules, and nothing else, since perf removes only these. It is copied
 * before the trace begins and once more when it has ended; of the second copy only the pages of
 * code and the symbols of modules stay that are not in the first one. */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/error.h"
#include "guest/guest_copy.h"
#include "guest/guest_modules.h"
#include "guest/kcore_changes.h"
#include "guest/output_directory.h"

/** Zero-initialise before use. */
struct kernel_copy {
	struct guest_copy copy; /* for those who show how far it is */
	/* Once it is complete: */
	char path[PATH_MAX]; /* of the directory */
	char release[128];   /* of the kernel; "" unknown */
	char build_id[128];  /* in hexadecimal; "" unknown */
	char boot_id[128];   /* "" unknown */
	uint64_t kernel_start, code_bytes, kallsyms_bytes;
	struct guest_modules modules;
	json_t *json; /* what guest.json says of a guest; for recording_json_kernel() */
	/* And once it was copied again: */
	struct kcore_changes changes;
	char changes_path[PATH_MAX]; /* of the pages, a core file; "" no page changed */
	char symbols_path[PATH_MAX]; /* of the symbols of modules that are new, if there are any */

	struct output_directory directory;
	bool is_again, is_begun;
};

/**
 * Begin to copy; nothing is read yet.
 *
 * @channel    to the machine's files, for the host those below "/"; borrowed until the copy is
 *             complete or has failed
 * @recording  path of its directory
 * @pid        of the process that runs the guest; 0: the host
 * @domain     its name; NULL: not known
 *
 * Returns 0, -PTVM_BAD_USAGE (no such path can be) or -PTVM_SYSTEM.
 */
int kernel_copy_begin(struct kernel_copy *kernel, struct channel *channel, const char *recording,
		      pid_t pid, const char *domain, struct ptvm_error *error);

/**
 * Do the next part, which takes seconds at most.
 *
 * Returns 1 while there is more to do, 0 when all is in its place, -PTVM_INCONSISTENT (what is
 * copied again was booted meanwhile: its code is not later code of the same kernel), or an error as
 * guest_copy_next(): what was begun is not there then.
 */
int kernel_copy_next(struct kernel_copy *kernel, struct ptvm_error *error);

/**
 * Begin to copy again, a kernel whose copy is complete; go on with kernel_copy_next().
 *
 * @channel  made anew, since channels work for a limited time
 *
 * Returns as kernel_copy_begin().
 */
int kernel_copy_again(struct kernel_copy *kernel, struct channel *channel,
		      struct ptvm_error *error);

/** Give up a copy that is not complete; while its channel is still there. */
void kernel_copy_abandon(struct kernel_copy *kernel);

/** Free everything, and remove what is not complete; accepts zeroes. */
void kernel_copy_free(struct kernel_copy *kernel);
