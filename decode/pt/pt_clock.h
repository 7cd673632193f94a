/* Timing packets -> host time in TSC ticks.
 *
 * A TSC packet with its TMA anchors the clock to the crystal (CTC); each MTC then moves it by whole
 * crystal periods, and CYC packets by core cycles in between, at a ratio measured between MTCs.
 * In a guest only the TSC packet shows guest time: there the clock goes on by the crystal, which
 * TMA tells for host and guest alike (SDM "Timing Packets", "TSC in VMX Operation"), and the
 * difference is that guest's TSC offset. All differences are modulo 2^56. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/pt/pt_config.h"
#include "decode/pt/pt_offsets.h"

enum { PT_CYC_SHIFT = 20 };

/** What a TSC packet and the packets around it say. */
struct pt_tsc_group {
	uint64_t tsc; /* 56 bits, as in the packet */
	bool have_tma;
	uint16_t ctc, fast; /* of the TMA */
	bool guest;         /* the packet shows guest time */
	uint64_t vmcs;      /* of that guest */
	bool in_psb;        /* of a PSB+; any other TSC may say that clocks had stopped */
};

struct pt_clock {
	const struct pt_config *config;
	uint64_t now;                  /* host TSC at the last timing packet; 0 unknown yet */
	uint64_t base;                 /* host TSC at the last TSC or MTC, or (cyc_least) a CYC */
	uint64_t anchor;               /* host TSC at the crystal edge that ctc counts from */
	int64_t ctc;                   /* crystal ticks from the anchor to the last MTC edge */
	uint64_t cycles;               /* since base */
	uint64_t mtc_cycles, mtc_base; /* cycles between the last two MTCs, to measure the ratio */
	uint64_t ratio;                /* TSC ticks per cycle, << PT_CYC_SHIFT; 0 unknown */
	uint16_t ctc16; /* low bits of the crystal count at the last TMA or MTC edge */
	uint8_t last_mtc;
	uint8_t cbr;
	uint64_t nominal;   /* what `ratio` should be by the CBR; 0 unknown */
	uint64_t ctc_ticks; /* TSC ticks per crystal tick, if that is a whole number; or 0 */
	bool known;         /* `now` is host time */
	bool have_ctc;      /* anchor, ctc, last_mtc hold */
	bool doubtful;      /* MTCs may have been lost since the anchor */
	bool mtc_unseen;    /* no MTC since the TMA, which lacks some bits of it if mtc_shift > 8 */
	bool calibrating;   /* mtc_cycles counts from an MTC edge */
	uint64_t reference; /* upper bound: TSC read by the recorder later; 0 none */
	uint64_t corrections; /* how often time was held back from running backwards */
	uint64_t translated;  /* TSCs of guests that are not the host's */
	struct pt_offsets offsets;
};

/** Begin with nothing known. `config` must outlive the clock. */
void pt_clock_init(struct pt_clock *clock, const struct pt_config *config);

/** A TSC packet. `guest` TSCs are understood by crystal or by a known offset. */
void pt_clock_tsc(struct pt_clock *clock, const struct pt_tsc_group *group);

/** An MTC packet: 8 bits of the crystal's count. */
void pt_clock_mtc(struct pt_clock *clock, uint8_t payload);

/** A CBR packet: core clock to bus clock, which bounds the ratio of CYC packets. */
void pt_clock_cbr(struct pt_clock *clock, uint8_t payload);

/** Timing packets were lost for long: MTCs no longer count until the next TSC with TMA. */
void pt_clock_lost(struct pt_clock *clock);

/** Timing packets may have been lost (overflow): a known TSC offset is better than the crystal. */
void pt_clock_doubt(struct pt_clock *clock);

/** Ticks of the TSC in `ctc` ticks of the crystal; 0 where the ratio is not known. */
uint64_t pt_ctc_to_tsc(const struct pt_config *config, int64_t ctc);

/**
 * A CYC packet with a count of any size: as pt_clock_cyc(), unless time would become later than
 * `reference` or than 64 bits can hold. Such a packet is damaged, and is ignored: time never runs
 * backwards, so that it would stand still from there on.
 */
void pt_clock_long_cyc(struct pt_clock *clock, uint64_t cycles);

/** CYC packets: on by `cycles`, which may be the sum of some in a row; costs a multiplication. */
static inline void pt_clock_cyc(struct pt_clock *clock, uint64_t cycles)
{
	uint64_t now;

	if (!cycles)
		return;
	clock->cycles += cycles;
	clock->mtc_cycles += cycles;
	now = clock->base + ((clock->cycles * clock->ratio) >> PT_CYC_SHIFT);
	if (now > clock->now)
		clock->now = now;
}
