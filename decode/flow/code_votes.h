/* Votes on when code was replaced: each says at its time that the code was still the earlier one,
 * or that it was other code by then. Some may be wrong. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_vote {
	uint64_t time_ns;
	bool is_earlier;
};

/** Zero-initialise before use. */
struct code_votes {
	struct code_vote *items;
	size_t count, room;
	uint64_t seen;
	unsigned halvings; /* one in 2^halvings is kept */
};

/** Add a vote; from `most` on every other one is dropped. Returns false when memory is out. */
bool code_votes_add(struct code_votes *votes, uint64_t time_ns, bool is_earlier, size_t most);

/**
 * Since when it is other code: the time that most votes agree with. UINT64_MAX: it was not
 * replaced, or too few votes say so, or too many speak against it; 0: no vote is for earlier code.
 */
uint64_t code_votes_since(struct code_votes *votes);

/** The last vote for the earlier code before that time, 0 if there is none, and the first for other
 * code behind it, or UINT64_MAX; whether they are enough to say so or not. */
void code_votes_between(struct code_votes *votes, uint64_t *ret_from_ns, uint64_t *ret_to_ns);

/** Free everything; accepts zeroes. */
void code_votes_free(struct code_votes *votes);
