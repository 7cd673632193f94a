#include "correlate/crystal.h"

enum { MTC_BITS = 8, TMA_BITS = 16, SHIFT_MAX = 15 };

void crystal_reset(struct crystal *crystal, const struct pt_config *config)
{
	uint8_t shift = config->mtc_shift < SHIFT_MAX ? config->mtc_shift : SHIFT_MAX;

	*crystal = (struct crystal){ .mtc_shift = shift };
}

/* How many ticks lead to a count whose low `bits` bits are `low`. Packets are written a little out
 * of order: what looks like a step forward by almost the whole range is one back, by two periods of
 * MTC at most. */
static int64_t step_to(const struct crystal *crystal, uint64_t low, unsigned bits)
{
	int64_t range = (int64_t)1 << bits;
	int64_t slip = (int64_t)2 << crystal->mtc_shift;
	int64_t step = (int64_t)((low - (uint64_t)crystal->count) & (uint64_t)(range - 1));

	if (slip > range / 4)
		slip = range / 4;
	return step > range - slip ? step - range : step;
}

void crystal_tma(struct crystal *crystal, uint16_t ctc)
{
	if (crystal->known) {
		crystal->count += step_to(crystal, ctc, TMA_BITS);
		return;
	}
	crystal->count = ctc;
	crystal->known = true;
	crystal->upper_known = crystal->mtc_shift + MTC_BITS <= TMA_BITS;
	crystal->upper = 0;
}

void crystal_mtc(struct crystal *crystal, uint8_t payload)
{
	uint32_t shown = (uint32_t)payload << crystal->mtc_shift;
	unsigned bits = MTC_BITS + crystal->mtc_shift;
	int64_t step;

	if (!crystal->known)
		return;
	step = step_to(crystal, shown - crystal->upper, crystal->upper_known ? bits : TMA_BITS);
	if (step > 0)
		crystal->count += step;
	if (crystal->upper_known)
		return;
	crystal->upper = (shown - (uint32_t)crystal->count) & ~(uint32_t)(CRYSTAL_TMA_RANGE - 1);
	crystal->upper_known = true;
}
