#include "decode/print/insn_period.h"

/* The largest power of two that is not more. */
static uint64_t power_of_two(uint64_t value)
{
	return value ? UINT64_C(1) << (63 - __builtin_clzll(value)) : 1;
}

void insn_period_init(struct insn_period *period, const struct itrace *itrace,
		      const struct pt_config *config)
{
	uint64_t ticks = itrace->period;

	if (itrace->period_unit == PERIOD_NS && config->conv.valid)
		ticks = time_conv_tsc(&config->conv, config->conv.zero + ticks);
	*period = (struct insn_period){
		.insns = !itrace->period                       ? 1
			 : itrace->period_unit == PERIOD_INSNS ? itrace->period
							       : 0,
		.ticks = power_of_two(ticks),
	};
}

/* Has the time come to a multiple of the period? Between two times of the trace an instruction is
 * taken to last a tick, as perf has it. */
static bool is_time(struct insn_period *period, uint64_t tsc)
{
	uint64_t before = tsc + period->since_time++, now;

	if (!period->is_begun && (before + 1) / period->ticks > period->last_period) {
		period->last_period = (before + 1) / period->ticks;
		period->is_begun = true;
	}
	now = (before + 1 + !period->is_begun) / period->ticks;
	if (now <= period->last_period)
		return false;
	period->last_period = now;
	return true;
}

uint64_t insn_period_count(struct insn_period *period, uint64_t tsc)
{
	uint64_t count = ++period->since_line;

	if (period->insns ? count < period->insns : !is_time(period, tsc))
		return 0;
	period->since_line = 0;
	return count;
}

/* So many instructions at least are not due. */
static uint64_t not_due(const struct insn_period *period, uint64_t tsc)
{
	uint64_t next = (period->last_period + 1) * period->ticks;
	uint64_t now = tsc + period->since_time + 2; /* is_time() looks ahead */

	if (period->insns)
		return period->insns - 1 - period->since_line;
	return next > now ? next - now : 0;
}

unsigned insn_period_pass(struct insn_period *period, uint64_t tsc, unsigned count)
{
	uint64_t most = not_due(period, tsc);

	if (count > most)
		count = (unsigned)most;
	period->since_line += count;
	if (!period->insns)
		period->since_time += count;
	return count;
}
