/* `ptvm correlate` without its command line: open a recording, find the offsets of its guests, and
 * correct it, a copy of it, or bring it back. */
#pragma once

#include <stdbool.h>

#include "correlate/offset_apply.h"
#include "correlate/offset_given.h"
#include "correlate/offset_recorded.h"
#include "correlate/tsc_offsets.h"
#include "correlate/vmcs_collect.h"
#include "decode/perf/perf_data.h"
#include "decode/perf/sideband.h"

/** Zero-initialise; correlation_close() when done. */
struct correlation {
	struct perf_data data;
	struct sideband *sideband;
	struct offsets_recorded recorded;
	struct tsc_offsets offsets;
	char *journal_path;
	enum journal_state journal; /* what was there when it was opened */
	int lock;                   /* descriptor that has it; 0 none, as of a pipe */
};

/**
 * Open the recording at `path`, and lock it until it is closed: many may read it at a time, or one
 * `changes` it.
 *
 * Errors as those of perf_data_open(), about the journal, or -PTVM_SYSTEM with who has it locked.
 */
int correlation_open(struct correlation *correlation, const char *path, bool changes,
		     struct ptvm_error *error);

/** Find the offsets, with those that were recorded. Returns 0, an error, or -PTVM_END when it was
 * stopped. */
int correlation_find(struct correlation *correlation, const struct offsets_given *given,
		     const struct watch *watch, struct ptvm_error *error);

/**
 * Correct the recording itself, which was opened to be changed.
 *
 * @force  also a file that is another user's, or read-only
 *
 * Returns 0, -PTVM_SYSTEM (it cannot be written), -PTVM_BAD_INPUT (no regular file, or one that
 * takes `force`), or an error of offset_apply().
 */
int correlation_apply(const struct correlation *correlation, bool force, const struct watch *watch,
		      struct apply_result *ret, struct ptvm_error *error);

/**
 * Whether `to` can be made. Returns 0; -PTVM_BAD_INPUT where it, or the draft of an earlier copy,
 * is there; -PTVM_SYSTEM where its directory is not, or cannot be written.
 */
int correlation_can_copy(const char *to, struct ptvm_error *error);

/** Write a corrected copy into the new directory `to`. Returns 0, or an error of
 * correlation_can_copy(), recording_copy() or correlation_apply(): nothing is left of it then. */
int correlation_copy(const struct correlation *correlation, const char *to,
		     const struct watch *watch, struct apply_result *ret, struct ptvm_error *error);

/**
 * Bring the recording, which was opened to be changed, back by its journal, finished or not.
 *
 * @force  also a file that is another user's, read-only, or changed since
 *
 * Returns 0, -PTVM_NOT_FOUND (there is no journal), or an error of correlation_apply(),
 * journal_open() or offset_undo().
 */
int correlation_undo(struct correlation *correlation, bool force, const struct watch *watch,
		     struct ptvm_error *error);

/** Release everything. */
void correlation_close(struct correlation *correlation);
