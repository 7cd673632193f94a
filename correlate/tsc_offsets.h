/* The TSC of every guest, by VMCS: stretches of host time in which it has one offset and ratio,
 *	guest = ((host * ratio) >> 48) + offset, modulo 2^56. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "correlate/tsc_run.h"

enum tsc_source { TSC_INFERRED, TSC_RECORDED, TSC_GIVEN };

/** How sure an offset is. */
enum tsc_confidence {
	TSC_LOW,    /* dated by the kernel's records, or ticks may be missing */
	TSC_MEDIUM, /* observed */
	TSC_HIGH,   /* observed more than once, or confirmed by the host's TSC after it; or told */
};

struct tsc_segment {
	uint64_t from, to; /* host TSC; 0 and UINT64_MAX where open */
	uint64_t offset;   /* 56 bits */
	uint64_t ratio;    /* TSC_RATIO_BITS fraction bits */
	uint64_t host;     /* some time in it */
	uint64_t observations;
	uint64_t residual; /* ticks, the largest */
	enum tsc_source source;
	enum tsc_confidence confidence;
};

struct vmcs_offsets {
	uint64_t vmcs;
	struct {
		struct tsc_segment *items; /* in order of time */
		size_t count, room;
	} segments;
	uint64_t packets, without_tma; /* guest TSC packets */
	uint64_t outliers;             /* observations that agreed with no other */
	uint64_t lost_ticks;           /* observations off by crystal ticks that were lost */
	uint64_t first_host;           /* about when it was first seen; 0 unknown */
	size_t queue;                  /* where the first segment's `host` was; or first_host */
	bool disagrees;                /* what was recorded is not what the packets show */
	bool is_unclear; /* what was recorded may be of another VMCS of the same thread */
};

/** Zero-initialise; tsc_offsets_free() when done. */
struct tsc_offsets {
	struct {
		struct vmcs_offsets *items;
		size_t count, room;
	} guests;
	uint64_t packets; /* TSC packets, of host and guests */
	uint64_t no_vmcs; /* guest TSC packets of which no VMCS is known */
	uint64_t dropped; /* and those of more VMCSs than are kept */
};

/** The entry of a VMCS, NULL if it has none. */
struct vmcs_offsets *tsc_offsets_find(const struct tsc_offsets *offsets, uint64_t vmcs);

/**
 * The host's time when a guest's TSC showed `tsc`.
 *
 * @about     a host time near it, 0 unknown
 * @expected  whether `about` is what the crystal tells, rather than a time some way off
 *
 * Of several segments the one by which it is nearest to what is expected is taken; otherwise the
 * one that the time is in, and of several such again the nearest. There must be at least one.
 */
uint64_t tsc_offsets_host(const struct vmcs_offsets *guest, uint64_t tsc, uint64_t about,
			  bool expected);

/** Host ticks as the guest's TSC multiplier scales them. */
uint64_t tsc_scale(uint64_t host, uint64_t ratio);

/** Whether the segment leaves a TSC as it is, but for rounding. */
bool tsc_segment_is_none(const struct tsc_segment *segment);

/** Whether no guest's TSC differs from the host's: there is nothing to correct. */
bool tsc_offsets_are_none(const struct tsc_offsets *offsets);

/** Whether each guest has an offset. */
bool tsc_offsets_are_complete(const struct tsc_offsets *offsets);

/** Release everything. */
void tsc_offsets_free(struct tsc_offsets *offsets);
