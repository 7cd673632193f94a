#include "correlate/tsc_patch.h"

#include "decode/base/error.h"

void tsc_patches_init(struct tsc_patches *patches, const struct tsc_offsets *offsets,
		      const struct aux_queue *queue, const struct pt_config *config,
		      struct bytes mapping)
{
	patches->offsets = offsets;
	patches->config = config;
	patches->chain = (struct tsc_chain){ 0 };
	patches->tolerance = tsc_tolerance(config);
	patches->left = 0;
	tsc_walk_init(&patches->walk, queue, config, mapping);
}

static bool near(const struct tsc_patches *patches, uint64_t a, uint64_t b)
{
	int64_t apart = tsc_difference(a, b);

	return apart <= patches->tolerance && apart >= -patches->tolerance;
}

/* Where no PSB+ says whose time it is, what the time must be decides. */
static bool is_guest(const struct tsc_patches *patches, const struct tsc_event *event,
		     const struct vmcs_offsets *guest, uint64_t about, bool expected)
{
	if (event->kind == TSC_PEBS || event->mode_told || !expected)
		return event->guest;
	if (near(patches, event->value, about))
		return false;
	return event->guest ||
	       (guest && guest->segments.count &&
		near(patches, tsc_offsets_host(guest, event->value, about, true), about));
}

/* Counting goes on from a TSC packet that shows the host's time, or whose host time is known. */
static void anchor(struct tsc_patches *patches, const struct tsc_event *event, uint64_t host)
{
	if (event->kind == TSC_PACKET)
		tsc_chain_anchor(&patches->chain, event, host);
}

/* Guests whose time is the host's are left alone: rounding would change them. */
static bool is_none(const struct vmcs_offsets *guest)
{
	for (size_t i = 0; i < guest->segments.count; i++)
		if (!tsc_segment_is_none(&guest->segments.items[i]))
			return false;
	return true;
}

/* PEBS records of 32-bit code have the lower half of the time stamp; the upper half is that of the
 * time around it. */
static uint64_t whole(const struct tsc_event *event, const struct vmcs_offsets *offsets,
		      uint64_t about)
{
	const struct tsc_segment *segment = offsets->segments.items;
	uint64_t guest;

	if (event->size >= 7)
		return event->value;
	for (size_t i = 1; i < offsets->segments.count; i++)
		if (about >= offsets->segments.items[i].from)
			segment = &offsets->segments.items[i];
	guest = tsc_scale(about, segment->ratio) + segment->offset;
	return guest + (uint64_t)(int32_t)((uint32_t)event->value - (uint32_t)guest);
}

/* The host's time of a guest's stamp. What is expected may be too early after a loss: then it
 * counts only where it is met. */
static uint64_t host_of(const struct tsc_patches *patches, const struct vmcs_offsets *guest,
			uint64_t tsc, uint64_t about, bool expected)
{
	uint64_t host = tsc_offsets_host(guest, tsc, about, expected);

	return expected && patches->chain.lost && !near(patches, host, about)
		       ? tsc_offsets_host(guest, tsc, about, false)
		       : host;
}

static bool translate(struct tsc_patches *patches, const struct tsc_event *event,
		      struct tsc_patch *ret)
{
	const struct aux_queue *queue = patches->walk.cursor.queue;
	const struct vmcs_offsets *guest = tsc_offsets_find(patches->offsets, event->vmcs);
	uint64_t about = tsc_chain_about(&patches->chain, event, queue, patches->config), host;
	uint64_t mask = event->size < 8 ? ((uint64_t)1 << event->size * 8) - 1 : UINT64_MAX;
	bool expected = patches->chain.known && event->have_count;

	if (!is_guest(patches, event, guest, about, expected)) {
		anchor(patches, event, tsc_near(event->value, about));
		return false;
	}
	if (!guest || !guest->segments.count) {
		patches->left++;
		return false;
	}
	/* it may have slept, when the crystal stands still */
	patches->chain.lost |= event->kind == TSC_PACKET && !event->in_psb;
	host = host_of(patches, guest, whole(event, guest, about), about, expected);
	if (is_none(guest))
		host = event->value;
	if (!expected || patches->chain.lost)
		anchor(patches, event, tsc_near(host, about));
	*ret = (struct tsc_patch){ event->position, event->size, host & mask };
	return ((host ^ event->value) & mask) != 0;
}

int tsc_patches_next(struct tsc_patches *patches, struct tsc_patch *ret)
{
	struct tsc_event event;

	while (!tsc_walk_next(&patches->walk, &event)) {
		if (event.kind != TSC_PEBS)
			tsc_chain_step(&patches->chain, &event);
		if (event.kind != TSC_BREAK && translate(patches, &event, ret))
			return 0;
	}
	return -PTVM_END;
}
