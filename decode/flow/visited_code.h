/* Code of a kernel of which one asks when it was replaced, and the votes on that: ranges that a
 * later copy has otherwise, or modules. Each is in the list once it was met. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/machine.h"
#include "decode/flow/code_votes.h"
#include "decode/flow/trace_sample.h"

struct visited_code {
	struct machine *machine;
	/* One of these two says which code it is. */
	const struct later_range *later; /* the first of the ranges that were replaced together */
	const char *module;              /* without a later copy, as machine_module() has it */
	struct code_votes votes;
	/* How the search for more visits goes (code_visits.c). */
	struct sample_times times; /* between which it was replaced, as far as is known */
	unsigned unchanged;        /* how often in a row looking on did not change them */
	uint64_t settled;          /* votes seen when nothing was left to look at; 0: there is */
};

/** Zero-initialise before use. */
struct visited_codes {
	struct visited_code **items; /* in the order in which they were met */
	size_t count, room;
	struct visited_code **sorted; /* the same by what they are */
	size_t sorted_room;
};

/** The one of the machine and with the code of `key`; NULL: it was not met. */
struct visited_code *visited_codes_find(const struct visited_codes *codes,
					const struct visited_code *key);

/** The same, made from `key` if it was not met. NULL when memory is out. */
struct visited_code *visited_codes_get(struct visited_codes *codes, const struct visited_code *key);

/** Add a vote on `code`, which is one of the list: the longer that is, the fewer votes on each are
 * kept. Returns false when memory is out. */
bool visited_codes_vote(const struct visited_codes *codes, struct visited_code *code,
			uint64_t time_ns, bool is_earlier);

/** Free everything; accepts zeroes. */
void visited_codes_free(struct visited_codes *codes);
