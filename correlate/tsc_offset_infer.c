#include "correlate/tsc_offset_infer.h"

#include <math.h>

#include "decode/base/error.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/pt/pt_clock.h"

/* Join neighbours that agree; returns whether there were any. */
static bool join(struct vmcs_seen *seen, int64_t tolerance)
{
	struct tsc_run *runs = seen->runs.items;
	size_t count = seen->runs.count, kept = 0;

	for (size_t i = 1; i < count; i++)
		if (!tsc_run_join(&runs[kept], &runs[i], tolerance))
			runs[++kept] = runs[i];
	seen->runs.count = count ? kept + 1 : 0;
	return seen->runs.count != count;
}

/* A single observation does not count where others agree with each other, unless it was confirmed.
 */
static void drop_outliers(struct vmcs_seen *seen)
{
	struct tsc_run *runs = seen->runs.items;
	size_t kept = 0, best = 0;

	for (size_t i = 1; i < seen->runs.count; i++)
		if (tsc_run_is_better(&runs[i], &runs[best]))
			best = i;
	for (size_t i = 0; i < seen->runs.count; i++) {
		if (i != best && runs[i].count == 1 && runs[i].quality != TSC_CONFIRMED)
			seen->outliers++;
		else
			runs[kept++] = runs[i];
	}
	seen->runs.count = kept;
}

/* Do two offsets differ by crystal ticks that were lost, in numbers that a TMA does not show? */
static bool is_ghost(const struct tsc_run *run, const struct tsc_run *of,
		     const struct pt_config *config, int64_t tolerance)
{
	enum { MOST = 1024 };
	int64_t period = (int64_t)pt_ctc_to_tsc(config, CRYSTAL_TMA_RANGE);
	int64_t apart = tsc_difference(tsc_run_offset(run), tsc_run_offset(of));
	int64_t periods;

	if (period <= 0 || !tsc_run_is_constant(run) || !tsc_run_is_constant(of))
		return false;
	periods = (apart + (apart < 0 ? -period : period) / 2) / period;
	apart -= periods * period;
	return periods && periods <= MOST && periods >= -MOST && apart <= tolerance &&
	       apart >= -tolerance;
}

/* Returns the observations of the runs that were dropped. */
static uint64_t drop_ghosts(struct vmcs_seen *seen, const struct pt_config *config,
			    int64_t tolerance)
{
	struct tsc_run *runs = seen->runs.items;
	uint64_t dropped = 0;
	size_t kept = 0;

	for (size_t i = 0; i < seen->runs.count; i++) {
		bool ghost = false;

		for (size_t k = 0; k < seen->runs.count && !ghost; k++)
			ghost = k != i && runs[k].count && runs[i].quality != TSC_CONFIRMED &&
				tsc_run_is_better(&runs[k], &runs[i]) &&
				is_ghost(&runs[i], &runs[k], config, tolerance);
		dropped += ghost ? runs[i].count : 0;
		if (ghost)
			runs[i].count = 0;
	}
	for (size_t i = 0; i < seen->runs.count; i++)
		if (runs[i].count)
			runs[kept++] = runs[i];
	seen->runs.count = kept;
	return dropped;
}

static double host_khz(const struct pt_config *config)
{
	if (config->conv.valid && config->conv.mult)
		return floor(1e6 * (double)((uint64_t)1 << config->conv.shift) / config->conv.mult +
			     0.5);
	return floor((double)config->nominal_hz / 1000 + 0.5);
}

/* KVM makes the ratio of two whole numbers of kHz; where the slope leaves one choice, that is it.
 */
static uint64_t ratio_of(const struct tsc_run *run, const struct pt_config *config)
{
	double middle = 1 + (run->slope_low + run->slope_high) / 2, khz = host_khz(config);
	double least = ceil((1 + run->slope_low) * khz), most = floor((1 + run->slope_high) * khz);

	if (tsc_run_is_constant(run))
		return TSC_RATIO_ONE;
	if (khz >= 1 && least == most)
		return (uint64_t)(((unsigned __int128)(uint64_t)least << TSC_RATIO_BITS) /
				  (uint64_t)khz);
	return (uint64_t)(middle * TSC_RATIO_ONE);
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static enum tsc_confidence confidence_of(const struct tsc_run *run)
{
	if (run->quality == TSC_DOUBTFUL)
		return run->count > 2 ? TSC_MEDIUM : TSC_LOW;
	return run->count > 1 || run->quality == TSC_CONFIRMED ? TSC_HIGH : TSC_MEDIUM;
}

static struct tsc_segment segment_of(const struct tsc_run *run, const struct pt_config *config)
{
	struct tsc_segment segment = { .from = run->from,
				       .to = run->last.host,
				       .ratio = ratio_of(run, config),
				       .host = run->first.host,
				       .observations = run->count,
				       .confidence = confidence_of(run) };
	uint64_t first = run->first.guest - tsc_scale(run->first.host, segment.ratio);
	uint64_t last = run->last.guest - tsc_scale(run->last.host, segment.ratio);
	int64_t drift = tsc_difference(last, first), away;

	if (tsc_run_is_constant(run)) {
		segment.offset = tsc_run_offset(run);
		away = tsc_difference(segment.offset, first);
		segment.residual = larger(magnitude(run->low - away), magnitude(run->high - away));
	} else {
		segment.offset = (first + (uint64_t)(drift / 2)) & PT_TSC_MASK;
		segment.residual = magnitude(drift - drift / 2);
	}
	return segment;
}

/* A segment lasts until the next one was seen; the first and the last are open. */
static void open_ends(struct vmcs_offsets *guest)
{
	struct tsc_segment *segments = guest->segments.items;
	size_t count = guest->segments.count;

	for (size_t i = 0; i < count; i++) {
		segments[i].from = i ? segments[i].from : 0;
		segments[i].to = i + 1 < count ? segments[i + 1].from : UINT64_MAX;
	}
}

/* Of the host times at which the crystal shows the count that it had in the guest, the one nearest
 * to the time that is known roughly. */
static uint64_t by_phase(const struct tsc_rough *rough, const struct tsc_phase *phase,
			 const struct pt_config *config)
{
	int64_t far = (int64_t)(rough->host - phase->host);
	int64_t ticks = (int64_t)((__int128)far * config->ctc_d / config->ctc_n);
	int16_t off = (int16_t)(rough->ctc - phase->ctc - (uint16_t)ticks);

	return phase->host + pt_ctc_to_tsc(config, (int64_t)((uint64_t)ticks + (uint64_t)off));
}

static struct tsc_segment segment_of_rough(const struct tsc_rough *rough,
					   const struct tsc_phase *phase,
					   const struct pt_config *config)
{
	bool exact = phase->valid && config->ctc_n && config->ctc_d;
	uint64_t host = exact ? by_phase(rough, phase, config) : rough->host;

	return (struct tsc_segment){ .to = UINT64_MAX,
				     .offset = (rough->guest - host) & PT_TSC_MASK,
				     .ratio = TSC_RATIO_ONE,
				     .host = host,
				     .observations = 1,
				     .confidence = exact ? TSC_MEDIUM : TSC_LOW };
}

static int add_segments(const struct vmcs_seen *seen, const struct tsc_phase *phase,
			const struct pt_config *config, struct vmcs_offsets *ret)
{
	for (size_t i = 0; i < seen->runs.count; i++)
		if (!vec_push(&ret->segments, segment_of(&seen->runs.items[i], config)))
			return -PTVM_NO_MEMORY;
	open_ends(ret);
	if (seen->runs.count || !seen->rough.valid)
		return 0;
	return vec_push(&ret->segments, segment_of_rough(&seen->rough, phase, config))
		       ? 0
		       : -PTVM_NO_MEMORY;
}

static int infer(struct vmcs_seen *seen, const struct tsc_phase *phase,
		 const struct pt_config *config, struct tsc_offsets *ret)
{
	int64_t tolerance = tsc_tolerance(config);
	struct vmcs_offsets guest = { .vmcs = seen->vmcs,
				      .packets = seen->packets,
				      .without_tma = seen->without_tma,
				      .first_host = seen->first_host,
				      .queue = seen->queue };

	sort_vec(&seen->runs, tsc_run_compare);
	while (join(seen, tolerance))
		;
	guest.lost_ticks = drop_ghosts(seen, config, tolerance);
	drop_outliers(seen);
	while (join(seen, tolerance))
		;
	guest.outliers = seen->outliers;
	if (seen->runs.count)
		guest.queue = seen->runs.items[0].queue;
	else if (seen->rough.valid)
		guest.queue = seen->rough.queue;
	if (!vec_push(&ret->guests, guest))
		return -PTVM_NO_MEMORY;
	return add_segments(seen, phase, config, &ret->guests.items[ret->guests.count - 1]);
}

SORT_BY(compare_guests, struct vmcs_offsets, vmcs)

int tsc_offset_infer(struct vmcs_table *table, const struct pt_config *config,
		     struct tsc_offsets *ret)
{
	int r = 0;

	ret->packets = table->packets;
	ret->no_vmcs = table->no_vmcs;
	ret->dropped = table->dropped;
	for (size_t i = 0; i < table->seen.count && !r; i++)
		r = infer(&table->seen.items[i], &table->phase, config, ret);
	sort_vec(&ret->guests, compare_guests);
	return r;
}
