#include "decode/mismatch_log.h"

#include <stdlib.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/vec.h"

enum {
	NEAR = 64,     /* bytes of trace: a reason may show a bit earlier or later */
	ASIDE = 3,     /* places outside of its time that speak against a patch, */
	ASIDE_IN = 16, /* and so many times those that speak for it there: then it was not so */
};

static bool is_lost(const struct patch_trail *trail)
{
	const struct trail_event *last = trail->count ? &trail->items[trail->count - 1] : NULL;

	return last && last->kind == TRAIL_GAP && last->source == trail->source;
}

void patch_trail_note(struct patch_trail *trail, struct trail_event event)
{
	if (event.kind == TRAIL_BEGIN && !is_lost(trail))
		return;
	event.source = trail->source;
	if (trail->count >= TRAIL_MAX || !vec_push(trail, event))
		trail->is_cut = true;
}

void patch_trail_clear(struct patch_trail *trail)
{
	trail->count = trail->source = 0;
	trail->is_cut = false;
}

void patch_trail_free(struct patch_trail *trail)
{
	vec_free(trail);
}

/* What a place says: for the patch, or against it. */
struct witness {
	uint64_t time;
	bool is_for, is_odd;
};

struct witnesses {
	struct witness *items;
	size_t count, room;
};

/* Whether the event comes before a place. */
static bool is_below(const struct trail_event *event, uint32_t source, uint64_t position)
{
	return event->source != source ? event->source < source : event->position < position;
}

/* The first event of the trail at or behind a place. */
static size_t find(const struct patch_trail *trail, uint32_t source, uint64_t position)
{
	return search_sorted(trail->count, i, is_below(&trail->items[i], source, position));
}

/* Whether there is an event close to another: one at odds, or any. */
static bool is_near(const struct patch_trail *trail, const struct trail_event *event, bool is_any)
{
	uint64_t from = event->position < NEAR ? 0 : event->position - NEAR;

	for (size_t i = find(trail, event->source, from); i < trail->count; i++) {
		const struct trail_event *other = &trail->items[i];

		if (other->source != event->source || other->position > event->position + NEAR)
			break;
		if (is_any || other->kind != TRAIL_BEGIN)
			return true;
	}
	return false;
}

/* Whether the trail was lost where another is at odds, so that it says nothing of that place. */
static bool is_lost_at(const struct patch_trail *trail, const struct trail_event *event)
{
	size_t i = find(trail, event->source, event->position);

	return i > 0 && trail->items[i - 1].source == event->source &&
	       trail->items[i - 1].kind == TRAIL_GAP;
}

static int compare_branches(const void *a, const void *b)
{
	const struct trail_event *left = a, *right = b;

	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	if (left->from != right->from)
		return left->from < right->from ? -1 : 1;
	return (left->to > right->to) - (left->to < right->to);
}

/* Whether the event speaks against the patch. `usual`: a trail's events by what they are. */
static bool is_against(const struct patch_trail *without, const struct trail_event *usual,
		       const struct trail_event *event)
{
	if (event->kind == TRAIL_BEGIN)
		return false;
	if (event->kind == TRAIL_ODD &&
	    bsearch(event, usual, without->count, sizeof(*usual), compare_branches))
		return false;
	return !is_lost_at(without, event) && !is_near(without, event, true);
}

/* Whether an event is about the place of the one before, and says no more. */
static bool is_again(const struct trail_event *event, const struct trail_event *last)
{
	return last && last->source == event->source && last->kind == event->kind &&
	       event->position - last->position <= NEAR;
}

static bool is_gone(const struct patch_trail *with, const struct trail_event *event)
{
	return event->kind != TRAIL_BEGIN && !is_near(with, event, false);
}

static int hear_for(const struct patch_trail *without, const struct patch_trail *with,
		    const struct patch_trail *unclear, struct witnesses *ret)
{
	const struct trail_event *last = NULL;

	for (size_t i = 0; i < without->count; i++) {
		const struct trail_event *event = &without->items[i];

		if (!is_gone(with, event) || is_near(unclear, event, false))
			continue;
		if (!is_again(event, last) &&
		    !vec_push(ret, (struct witness){ .time = event->time, .is_for = true }))
			return -PTVM_NO_MEMORY;
		last = event;
	}
	return 0;
}

static int hear_against(const struct patch_trail *without, const struct patch_trail *with,
			struct witnesses *ret)
{
	struct trail_event *usual = reallocarray(NULL, without->count + 1, sizeof(*usual));
	const struct trail_event *last = NULL;
	bool is_heard = usual;

	if (!usual)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < without->count; i++)
		usual[i] = without->items[i];
	qsort(usual, without->count, sizeof(*usual), compare_branches);
	for (size_t i = 0; is_heard && i < with->count; i++) {
		const struct trail_event *event = &with->items[i];

		if (!is_against(without, usual, event))
			continue;
		if (!is_again(event, last))
			is_heard = vec_push(ret,
					    (struct witness){ .time = event->time,
							      .is_odd = event->kind == TRAIL_ODD });
		last = event;
	}
	free(usual);
	return is_heard ? 0 : -PTVM_NO_MEMORY;
}

static int compare(const void *a, const void *b)
{
	const struct witness *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return left->is_for - right->is_for;
}

/* The stretch [*from, *to) of the witnesses in which most speak for the patch. */
static void find_stretch(const struct witnesses *list, size_t *from, size_t *to)
{
	int64_t sum = 0, best = 0;
	size_t begin = 0;

	*from = *to = 0;
	for (size_t i = 0; i < list->count; i++) {
		sum += list->items[i].is_for ? 1 : -1;
		if (sum <= 0) {
			sum = 0;
			begin = i + 1;
		} else if (sum > best) {
			best = sum;
			*from = begin;
			*to = i + 1;
		}
	}
}

struct sums {
	uint32_t gone, against, odd;
};

static struct sums add_up(const struct witnesses *list, size_t from, size_t to)
{
	struct sums sums = { 0 };

	for (size_t i = from; i < to; i++) {
		sums.gone += list->items[i].is_for;
		sums.odd += list->items[i].is_odd;
		sums.against += !list->items[i].is_for && !list->items[i].is_odd;
	}
	return sums;
}

/* Whether the patch was not in force while these were heard. */
static bool is_aside(const struct witnesses *list, size_t from, size_t to)
{
	struct sums sums = add_up(list, from, to);

	return sums.against >= ASIDE && sums.against >= ASIDE_IN * sums.gone;
}

/* Whether there is a time before which the first `count` were heard, and not the others. */
static bool is_between(const struct witnesses *list, size_t count)
{
	return !count || count == list->count ||
	       list->items[count - 1].time < list->items[count].time;
}

static void judge(const struct witnesses *list, struct trail_verdict *ret)
{
	struct sums sums;
	size_t from, to;

	find_stretch(list, &from, &to);
	if (!is_between(list, from) || !is_aside(list, 0, from))
		from = 0;
	if (!is_between(list, to) || !is_aside(list, to, list->count))
		to = list->count;

	sums = add_up(list, from, to);
	ret->since = from ? list->items[from - 1].time + 1 : 0;
	ret->until = to < list->count ? list->items[to].time : UINT64_MAX;
	ret->gone = sums.gone;
	ret->odd = sums.odd;
	ret->against =
		sums.against + add_up(list, 0, from).gone + add_up(list, to, list->count).gone;
}

int patch_trail_compare(const struct patch_trail *without, const struct patch_trail *with,
			const struct patch_trail *unclear, struct trail_verdict *ret)
{
	struct witnesses list = { 0 };
	int r = without->is_cut || with->is_cut || unclear->is_cut ? -PTVM_NO_MEMORY : 0;

	*ret = (struct trail_verdict){ .until = UINT64_MAX };
	if (!r)
		r = hear_for(without, with, unclear, &list);
	if (!r)
		r = hear_against(without, with, &list);
	if (!r && list.count) {
		qsort(list.items, list.count, sizeof(*list.items), compare);
		judge(&list, ret);
	}
	vec_free(&list);
	return r;
}

static int compare_places(const void *a, const void *b)
{
	const struct trail_event *left = a, *right = b;

	return is_below(right, left->source, left->position) -
	       is_below(left, right->source, right->position);
}

void patch_trail_note_gone(const struct patch_trail *without, const struct patch_trail *with,
			   struct patch_trail *unclear)
{
	for (size_t i = 0; i < without->count; i++) {
		if (!is_gone(with, &without->items[i]))
			continue;
		unclear->source = without->items[i].source;
		patch_trail_note(unclear, without->items[i]);
	}
	if (unclear->count)
		qsort(unclear->items, unclear->count, sizeof(*unclear->items), compare_places);
}
