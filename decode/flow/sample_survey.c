#include "decode/flow/sample_survey.h"

#include <stdlib.h>

enum {
	LEARN_INSNS = 1 << 21, /* to follow of what is at odds, about */
	OTHERS = 64,           /* segments kept that are not: what speaks against patches */
};

/* What a first look at the segments of the sample has told. */
struct survey {
	bool *at_odds;            /* each of them; NULL without memory */
	uint64_t bytes, odds;     /* of all, and of those that are */
	uint64_t insns, followed; /* instructions and bytes, up to where each was at odds */
};

static void look_at(struct sample_run *run, struct survey *ret)
{
	*ret = (struct survey){ .at_odds = calloc(run->segments.count + 1, sizeof(bool)) };
	for (size_t i = 0; ret->at_odds && i < run->segments.count; i++) {
		const struct pt_segment *segment = &run->segments.items[i].segment;
		uint64_t size = segment->to - segment->from;

		ret->at_odds[i] = sample_run_disagrees(run, i, true);
		ret->bytes += size;
		ret->odds += ret->at_odds[i] ? size : 0;
		ret->insns += run->flow.insns;
		ret->followed += pt_cursor_position(&run->flow.cursor) - segment->from;
	}
}

/* Whether a segment is at odds and one next to it is not, or the other way round. */
static bool is_at_border(const struct survey *found, size_t index, size_t count)
{
	bool at_odds = found->at_odds[index];

	return (index && found->at_odds[index - 1] != at_odds) ||
	       (index + 1 < count && found->at_odds[index + 1] != at_odds);
}

bool sample_survey_thin_out(struct sample_run *run, uint64_t *ret_bytes)
{
	struct sample_segments *segments = &run->segments;
	size_t kept = 0, count = segments->count, seen[2] = { 0 };
	struct survey found;
	uint64_t insns;

	look_at(run, &found);
	insns = found.odds * found.insns / (found.followed + 1);
	for (size_t i = 0; found.odds && i < count; i++) {
		bool at_odds = found.at_odds[i];
		uint64_t nth = 1 + (at_odds ? insns / LEARN_INSNS : count / OTHERS);

		if (seen[at_odds]++ % nth == 0 || is_at_border(&found, i, count))
			segments->items[kept++] = segments->items[i];
	}
	segments->count = kept;
	*ret_bytes = found.bytes;
	free(found.at_odds);
	return found.odds && !sample_run_settle(run);
}
