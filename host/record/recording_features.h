/* What a recording says of the machine it was made on and of itself: the feature sections that perf
 * writes, as far as a decoder needs them, or a reader wants to know. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/machine/roots.h"
#include "host/record/recording_out.h"

struct build_ids;

enum { RECORDING_MAX_FEATURES = 16 };

#define RECORDING_EARLY_FEATURES ".ptvm-features"

/** Zero-initialise before use. */
struct recording_features {
	struct recording_feature items[RECORDING_MAX_FEATURES]; /* in order of their numbers */
	size_t count;
};

/** What only the recorder knows. */
struct recording_facts {
	const char *version; /* of ptvm */
	int argc;            /* the command line */
	char *const *argv;
	const struct recording_event *events;
	size_t event_count;
	uint64_t first_ns, last_ns; /* perf's clock, of the first and last record; 0: none yet */
	const struct build_ids *build_ids; /* of what ran; NULL: not known */
};

/**
 * Collect the features.
 * Returns 0 or -PTVM_NO_MEMORY; release with recording_features_free().
 */
int recording_features_make(const struct roots *roots, const struct recording_facts *facts,
			    struct recording_features *ret);

/**
 * Keep them beside a recording that has only begun, for one that is never completed: in a perf.data
 * file without events, which goes when the recording is complete.
 *
 * @path  of the recording's file, with RECORDING_EARLY_FEATURES behind it
 *
 * Returns 0 or an error of recording_out_create().
 */
int recording_features_keep(const struct recording_features *features, const char *path,
			    struct ptvm_error *error);

/** Accepts zeroes. */
void recording_features_free(struct recording_features *features);
