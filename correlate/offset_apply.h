/* Guest time stamps in a recording's file become the host's, all or none of them: what changes is
 * in the journal, on disk, before the file changes, and rolls it back where that is not finished.
 */
#pragma once

#include "correlate/file_io.h"
#include "correlate/journal.h"
#include "correlate/tsc_offsets.h"
#include "correlate/watch.h"
#include "decode/perf/perf_data.h"

struct apply_target {
	int fd;              /* of the data file, open for writing */
	const char *path;    /* of it */
	const char *journal; /* where the journal is to be */
	const struct file_io *io;
	struct watch watch;
};

/** What came of it. */
struct apply_result {
	uint64_t changed; /* pieces of time stamps: one, or two where it straddles */
	uint64_t left;    /* guest time stamps without an offset */
};

/**
 * Correct the file whose recording is `data`; the target may be a copy of it. When nothing is to be
 * changed no journal is left.
 *
 * Returns 0; -PTVM_END when it was stopped; -PTVM_INCONSISTENT where a journal is there already; or
 * another error. The file is unchanged then, unless undoing failed as well; the next run does it
 * then.
 */
int offset_apply(const struct perf_data *data, const struct tsc_offsets *offsets,
		 const struct apply_target *target, struct apply_result *ret,
		 struct ptvm_error *error);

/**
 * Bring the file back to what it was before the journal, and remove that.
 *
 * @force  even where the file does not have the bytes that the journal knows
 *
 * Returns 0 or an error; the journal stays then.
 */
int offset_undo(const struct apply_target *target, const struct journal *journal, bool force,
		struct ptvm_error *error);
