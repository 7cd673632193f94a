#include "decode/flow/code_votes.h"

#include <stdlib.h>

#include "decode/base/sort.h"
#include "decode/base/vec.h"

enum {
	LEAST = 2,    /* votes for other code that it takes */
	AGAINST = 16, /* votes that it takes for each one against it */
};

bool code_votes_add(struct code_votes *votes, uint64_t time_ns, bool is_earlier, size_t most)
{
	if (votes->seen++ & (((uint64_t)1 << votes->halvings) - 1))
		return true;
	if (!vec_push(votes, (struct code_vote){ time_ns, is_earlier }))
		return false;
	if (votes->count < most)
		return true;
	for (size_t i = 0; i < votes->count / 2; i++)
		votes->items[i] = votes->items[2 * i];
	votes->count /= 2;
	votes->halvings++;
	return true;
}

SORT_BY(compare, struct code_vote, time_ns)

struct sums {
	size_t earlier, other;
};

static void count_vote(struct sums *sums, const struct code_vote *vote)
{
	sums->earlier += vote->is_earlier;
	sums->other += !vote->is_earlier;
}

/* Whether the votes before number `i` are not of the same time as the others. */
static bool is_border(const struct code_votes *votes, size_t i)
{
	return i == votes->count || votes->items[i - 1].time_ns != votes->items[i].time_ns;
}

/* Where votes for the earlier code before and for other code behind are most. */
struct parting {
	size_t number; /* of the first vote behind */
	struct sums before, all;
};

static struct parting part(struct code_votes *votes)
{
	struct parting best = { 0 };
	struct sums before = { 0 };

	sort_vec(votes, compare);
	for (size_t i = 0; i < votes->count; i++) {
		count_vote(&before, &votes->items[i]);
		if (before.earlier + best.before.other <= best.before.earlier + before.other ||
		    !is_border(votes, i + 1))
			continue;
		best.before = before;
		best.number = i + 1;
	}
	best.all = before;
	return best;
}

/* The votes up to the last one before number `i` that is for the earlier code. */
static size_t last_earlier(const struct code_votes *votes, size_t i)
{
	while (i && !votes->items[i - 1].is_earlier)
		i--;
	return i;
}

/* The first vote from number `i` on that is for other code, or the end. */
static size_t first_other(const struct code_votes *votes, size_t i)
{
	while (i < votes->count && votes->items[i].is_earlier)
		i++;
	return i;
}

uint64_t code_votes_since(struct code_votes *votes)
{
	const struct parting best = part(votes);
	size_t others = best.all.other - best.before.other;
	size_t last = last_earlier(votes, best.number);

	if (others < LEAST || best.all.earlier - best.before.earlier > others / AGAINST ||
	    best.before.other > best.before.earlier / AGAINST)
		return UINT64_MAX;
	return last ? votes->items[last - 1].time_ns / 2 +
			       votes->items[first_other(votes, best.number)].time_ns / 2 + 1
		    : 0;
}

void code_votes_between(struct code_votes *votes, uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
	const size_t number = part(votes).number;
	size_t last = last_earlier(votes, number), first = first_other(votes, number);

	*ret_from_ns = last ? votes->items[last - 1].time_ns : 0;
	*ret_to_ns = first < votes->count ? votes->items[first].time_ns : UINT64_MAX;
}

void code_votes_free(struct code_votes *votes)
{
	vec_free(votes);
}
