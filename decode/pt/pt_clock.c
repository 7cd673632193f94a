#include "decode/pt/pt_clock.h"

/* A ratio that differs by more than a quarter from what the CBR says was measured wrong. */
enum { RATIO_TOLERANCE = 4 };

void pt_clock_init(struct pt_clock *clock, const struct pt_config *config)
{
	*clock = (struct pt_clock){ .config = config };
	if (config->ctc_d && config->ctc_n % config->ctc_d == 0)
		clock->ctc_ticks = config->ctc_n / config->ctc_d;
	if (!config->tsc)
		clock->known = true; /* time 0 throughout, plus cycles */
}

uint64_t pt_ctc_to_tsc(const struct pt_config *config, int64_t ctc)
{
	const int64_t small = (int64_t)1 << 31; /* a minute of crystal ticks; more need 128 bits */

	if (!config->ctc_d)
		return 0;
	if (ctc < small && ctc > -small)
		return (uint64_t)(ctc * (int64_t)config->ctc_n / (int64_t)config->ctc_d);
	return (uint64_t)((__int128)ctc * config->ctc_n / config->ctc_d);
}

/* As pt_ctc_to_tsc(), without a division where the ratio is a whole number. */
static uint64_t crystal_ticks(const struct pt_clock *clock, int64_t ctc)
{
	return clock->ctc_ticks ? (uint64_t)ctc * clock->ctc_ticks
				: pt_ctc_to_tsc(clock->config, ctc);
}

/* From when on the next CYC counts, now that it is `tsc`. With a threshold there need not have been
 * one just before: then that is still the time of the last one, less than the threshold ago. */
static uint64_t counted_from(const struct pt_clock *clock, uint64_t tsc)
{
	uint64_t least = clock->config->cyc_least, last, most;

	if (!least)
		return tsc;
	last = clock->base + ((clock->cycles * clock->ratio) >> PT_CYC_SHIFT);
	most = (least * clock->ratio) >> PT_CYC_SHIFT;
	if (last >= tsc)
		return tsc;
	return tsc - last < most ? last : tsc - most;
}

static void move_to(struct pt_clock *clock, uint64_t tsc)
{
	clock->base = counted_from(clock, tsc);
	clock->cycles = 0;
	clock->corrections += tsc < clock->now;
	if (tsc > clock->now)
		clock->now = tsc;
}

/* All 64 bits of a 56-bit TSC: those nearest to a time that is known. */
static uint64_t extend(const struct pt_clock *clock, uint64_t tsc)
{
	uint64_t near = clock->known ? clock->now : clock->reference;
	int64_t away = (int64_t)((tsc - near) << 8) >> 8;

	return near ? near + (uint64_t)away : tsc;
}

/* The host's time at a TSC group by counting crystal ticks since the anchor. The 16-bit step may
 * go back a little: a TSC can be written after the MTC that follows it. */
static uint64_t time_by_crystal(const struct pt_clock *clock, const struct pt_tsc_group *group)
{
	int16_t step = (int16_t)(group->ctc - clock->ctc16);

	return clock->anchor + crystal_ticks(clock, clock->ctc + step) + group->fast;
}

static void set_anchor(struct pt_clock *clock, uint64_t tsc, const struct pt_tsc_group *group)
{
	const struct pt_config *config = clock->config;
	uint16_t within = (uint16_t)(group->ctc & ((1u << config->mtc_shift) - 1));

	clock->have_ctc = group->have_tma && config->ctc_n && config->ctc_d;
	clock->calibrating = false;
	clock->doubtful = false;
	if (!clock->have_ctc)
		return;
	clock->anchor = tsc - group->fast;
	clock->ctc = -(int64_t)within;
	clock->ctc16 = (uint16_t)(group->ctc - within);
	clock->last_mtc = (uint8_t)(group->ctc >> config->mtc_shift);
	clock->mtc_unseen = true;
}

/* Is a time after the recorder read the buffer? */
static bool is_too_late(const struct pt_clock *clock, uint64_t tsc)
{
	return clock->reference && tsc > clock->reference;
}

/* Is a host time possible: not much before now, and not too late? */
static bool is_plausible(const struct pt_clock *clock, uint64_t tsc)
{
	enum { SLIP = 0x10000 }; /* ticks that a TSC packet may be late */

	if (clock->known && tsc + SLIP < clock->now)
		return false;
	return !is_too_late(clock, tsc);
}

/* A guest's TSC in host time. An offset is learned where no tick of the crystal can be missing: in
 * a PSB+, as a TSC outside of it also follows a sleep, when the clocks stood still (SDM, TSC
 * packets). `ret_sure` tells whether the clock may be relied on from there. */
static bool guest_time(struct pt_clock *clock, const struct pt_tsc_group *group, uint64_t *ret,
		       bool *ret_sure)
{
	bool by_crystal = clock->have_ctc && group->have_tma;
	bool is_counted = by_crystal && group->in_psb && !clock->doubtful;
	uint64_t offset;

	*ret_sure = true;
	if (!is_counted && pt_offsets_find(&clock->offsets, group->vmcs, &offset)) {
		*ret = extend(clock, (group->tsc - offset) & PT_TSC_MASK);
		if (is_plausible(clock, *ret))
			return true;
	}
	if (!by_crystal)
		return false;
	*ret = time_by_crystal(clock, group);
	*ret_sure = is_counted;
	if (is_counted)
		pt_offsets_set(&clock->offsets, group->vmcs, (group->tsc - *ret) & PT_TSC_MASK);
	return true;
}

/* Whether a guest's TSC is not the host's, but for rounding. */
static bool is_translated(uint64_t tsc, uint64_t guest)
{
	enum { ROUNDING = 64 };
	int64_t away = (int64_t)((guest - tsc) << 8) >> 8;

	return away > ROUNDING || away < -ROUNDING;
}

void pt_clock_tsc(struct pt_clock *clock, const struct pt_tsc_group *group)
{
	bool raw = clock->config->guest_tsc_raw, is_sure = true;
	uint64_t tsc;

	if (group->guest) {
		if (!guest_time(clock, group, &tsc, &is_sure)) {
			pt_clock_lost(clock);
			return;
		}
		clock->translated += is_translated(tsc, group->tsc);
	} else {
		tsc = extend(clock, group->tsc);
		if (!raw && !is_plausible(clock, tsc) && clock->have_ctc && group->have_tma)
			tsc = time_by_crystal(clock, group);
		else if (!raw && is_too_late(clock, tsc))
			return; /* damaged: time would stand still there */
	}
	move_to(clock, tsc);
	clock->known = true;
	set_anchor(clock, tsc, group);
	clock->doubtful = !is_sure;
}

/* MTC shows 8 bits of the crystal count, from bit mtc_shift on. If that is above 8, some of them
 * lie beyond the 16 bits that TMA shows: the first MTC tells them. */
static void learn_upper_bits(struct pt_clock *clock, uint8_t payload)
{
	unsigned shift = clock->config->mtc_shift;
	uint8_t missing;

	clock->mtc_unseen = false;
	if (shift <= 8)
		return;
	missing = (uint8_t)(0xff << (16 - shift));
	clock->last_mtc = (uint8_t)((clock->last_mtc & ~missing) | (payload & missing));
	if (clock->last_mtc >= payload)
		clock->last_mtc -= (uint8_t)(1 << (16 - shift));
}

/* Rounded up: a count of cycles that takes a whole number of ticks must not take one less. */
static uint64_t make_ratio(uint64_t ticks, uint64_t cycles)
{
	return ((ticks << PT_CYC_SHIFT) + cycles - 1) / cycles;
}

/* The cycles between two MTC edges give the ratio, unless it is far from what CBR says, or some of
 * them are told later. */
static void calibrate(struct pt_clock *clock, uint64_t edge)
{
	uint64_t nominal = clock->nominal, ratio;

	if (clock->config->cyc_least)
		return;
	if (clock->calibrating && clock->mtc_cycles && edge > clock->mtc_base) {
		ratio = make_ratio(edge - clock->mtc_base, clock->mtc_cycles);
		if (!nominal || (ratio > nominal - nominal / RATIO_TOLERANCE &&
				 ratio < nominal + nominal / RATIO_TOLERANCE))
			clock->ratio = ratio;
	}
	clock->calibrating = true;
	clock->mtc_cycles = 0;
	clock->mtc_base = edge;
}

void pt_clock_mtc(struct pt_clock *clock, uint8_t payload)
{
	uint8_t delta;
	uint64_t edge;

	if (!clock->have_ctc)
		return;
	if (clock->mtc_unseen)
		learn_upper_bits(clock, payload);
	delta = (uint8_t)(payload - clock->last_mtc);
	clock->last_mtc = payload;
	clock->ctc += (int64_t)delta << clock->config->mtc_shift;
	clock->ctc16 = (uint16_t)(clock->ctc16 + (delta << clock->config->mtc_shift));
	edge = clock->anchor + crystal_ticks(clock, clock->ctc);
	/* A TSC may slip past the MTC it should precede, whose edge is then in the past. */
	if (edge < clock->base)
		return;
	calibrate(clock, edge);
	move_to(clock, edge);
}

void pt_clock_long_cyc(struct pt_clock *clock, uint64_t cycles)
{
	unsigned __int128 sum = (unsigned __int128)clock->cycles + cycles;
	uint64_t most = UINT64_MAX >> PT_CYC_SHIFT; /* ticks since the base */

	if (clock->reference > clock->base && clock->reference - clock->base < most)
		most = clock->reference - clock->base;
	if (!clock->ratio || sum <= ((unsigned __int128)most << PT_CYC_SHIFT) / clock->ratio)
		pt_clock_cyc(clock, cycles);
}

void pt_clock_cbr(struct pt_clock *clock, uint8_t payload)
{
	if (payload == clock->cbr && clock->ratio)
		return;
	clock->cbr = payload;
	clock->calibrating = false;
	clock->nominal = 0;
	if (!payload || !clock->config->max_nonturbo)
		return;
	clock->nominal = make_ratio(clock->config->max_nonturbo, payload);
	clock->ratio = clock->nominal;
}

void pt_clock_lost(struct pt_clock *clock)
{
	clock->have_ctc = false;
	clock->calibrating = false;
}

void pt_clock_doubt(struct pt_clock *clock)
{
	clock->doubtful = true;
	clock->calibrating = false;
}
