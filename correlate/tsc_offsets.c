#include "correlate/tsc_offsets.h"

#include "decode/base/vec.h"

struct vmcs_offsets *tsc_offsets_find(const struct tsc_offsets *offsets, uint64_t vmcs)
{
	for (size_t i = 0; i < offsets->guests.count; i++)
		if (offsets->guests.items[i].vmcs == vmcs)
			return &offsets->guests.items[i];
	return NULL;
}

uint64_t tsc_scale(uint64_t host, uint64_t ratio)
{
	return (uint64_t)(((unsigned __int128)host * ratio) >> TSC_RATIO_BITS);
}

/* Host TSC of the segment's guest TSC, near `about`. */
static uint64_t segment_host(const struct tsc_segment *segment, uint64_t tsc, uint64_t about)
{
	uint64_t near = about ? about : segment->host;
	__int128 away = tsc_difference(tsc - segment->offset, tsc_scale(near, segment->ratio));

	if (segment->ratio != TSC_RATIO_ONE && segment->ratio)
		away = away * (__int128)TSC_RATIO_ONE / (__int128)segment->ratio;
	return near + (uint64_t)away;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* How far outside of the segment a time is. */
static uint64_t outside(const struct tsc_segment *segment, uint64_t host)
{
	if (host < segment->from)
		return segment->from - host;
	return host > segment->to ? host - segment->to : 0;
}

uint64_t tsc_offsets_host(const struct vmcs_offsets *guest, uint64_t tsc, uint64_t about,
			  bool expected)
{
	uint64_t best = 0, least = 0, nearest = 0;

	for (size_t i = 0; i < guest->segments.count; i++) {
		const struct tsc_segment *segment = &guest->segments.items[i];
		uint64_t host = segment_host(segment, tsc, about);
		uint64_t off = expected ? 0 : outside(segment, host);
		uint64_t away = about ? apart(host, about) : 0;

		if (i && (off > least || (off == least && away >= nearest)))
			continue;
		best = host;
		least = off;
		nearest = away;
	}
	return best;
}

bool tsc_segment_is_none(const struct tsc_segment *segment)
{
	enum { ROUNDING = 8 };
	int64_t offset = tsc_difference(segment->offset, 0);

	return segment->ratio == TSC_RATIO_ONE && offset <= ROUNDING && offset >= -ROUNDING;
}

bool tsc_offsets_are_none(const struct tsc_offsets *offsets)
{
	for (size_t i = 0; i < offsets->guests.count; i++)
		for (size_t k = 0; k < offsets->guests.items[i].segments.count; k++)
			if (!tsc_segment_is_none(&offsets->guests.items[i].segments.items[k]))
				return false;
	return true;
}

bool tsc_offsets_are_complete(const struct tsc_offsets *offsets)
{
	for (size_t i = 0; i < offsets->guests.count; i++)
		if (!offsets->guests.items[i].segments.count)
			return false;
	return !offsets->no_vmcs && !offsets->dropped;
}

void tsc_offsets_free(struct tsc_offsets *offsets)
{
	for (size_t i = 0; i < offsets->guests.count; i++)
		vec_free(&offsets->guests.items[i].segments);
	vec_free(&offsets->guests);
}
