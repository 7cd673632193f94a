/* The crystal's count (CTC) from one TMA packet to the next, by the MTC packets between: how far
 * apart in time two TSC packets are, be they of host or guest (SDM "Timing Packets"). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/pt/pt_config.h"

enum { CRYSTAL_TMA_RANGE = 1 << 16 }; /* counts that a TMA tells apart */

struct crystal {
	int64_t count;  /* ticks; the low 16 bits are those of the last TMA, moved on by MTCs */
	uint32_t upper; /* what an MTC has above 16 bits of count (mtc_shift > 8) */
	uint8_t mtc_shift;
	bool known;
	bool upper_known;
};

/** Begin, or begin anew after a loss of data: the count is not known. */
void crystal_reset(struct crystal *crystal, const struct pt_config *config);

/** A TMA shows the low 16 bits of the count. */
void crystal_tma(struct crystal *crystal, uint16_t ctc);

/** An MTC shows 8 bits of the count, from bit mtc_shift on. */
void crystal_mtc(struct crystal *crystal, uint8_t payload);
