#include "correlate/tsc_run.h"

#include "decode/pt_clock.h"

/* Slopes: as near to 1 as KVM leaves a guest unscaled, with a margin, and as far as it scales. */
static const double slope_least = 1e-4, slope_most = 64, slope_fewest = -63.0 / 64;

int64_t tsc_tolerance(const struct pt_config *config)
{
	enum { AT_LEAST = 64 };
	int64_t ticks = (int64_t)pt_ctc_to_tsc(config, 2);

	return ticks > AT_LEAST ? ticks : AT_LEAST;
}

struct tsc_run tsc_run_begin(const struct tsc_pair *pair, enum tsc_quality quality, size_t queue)
{
	return (struct tsc_run){
		.first = *pair, .last = *pair, .count = 1, .quality = quality, .queue = queue
	};
}

/* How much further the guest's TSC went than the host's, since the first pair. */
static int64_t stray(const struct tsc_run *run, const struct tsc_pair *pair)
{
	return tsc_difference(pair->guest - run->first.guest, pair->host - run->first.host);
}

static void note(struct tsc_run *run, const struct tsc_pair *pair, enum tsc_quality quality)
{
	if ((int64_t)(pair->host - run->last.host) > 0)
		run->last = *pair;
	if (quality > run->quality)
		run->quality = quality;
	run->count++;
}

static bool add_constant(struct tsc_run *run, const struct tsc_pair *pair, int64_t tolerance)
{
	int64_t by = stray(run, pair);
	int64_t low = by < run->low ? by : run->low;
	int64_t high = by > run->high ? by : run->high;

	if ((uint64_t)high - (uint64_t)low > (uint64_t)tolerance)
		return false;
	run->low = low;
	run->high = high;
	run->sum += by;
	return true;
}

/* The slopes that bring the line within tolerance of a pair; false when the run has none such. */
static bool narrow(struct tsc_run *run, const struct tsc_pair *pair, double low, double high,
		   int64_t tolerance)
{
	double far = (double)(int64_t)(pair->host - run->first.host);
	double at = (double)stray(run, pair), slack = (double)tolerance;
	double least, most;

	if (far <= slack && far >= -slack)
		return at <= slack && at >= -slack;
	least = (far > 0 ? at - slack : at + slack) / far;
	most = (far > 0 ? at + slack : at - slack) / far;
	if (least < low)
		least = low;
	if (most > high)
		most = high;
	if (least > most)
		return false;
	run->slope_low = least;
	run->slope_high = most;
	return true;
}

bool tsc_run_add(struct tsc_run *run, const struct tsc_pair *pair, enum tsc_quality quality,
		 int64_t tolerance)
{
	bool fits = tsc_run_is_constant(run)
			    ? add_constant(run, pair, tolerance)
			    : narrow(run, pair, run->slope_low, run->slope_high, tolerance);

	if (fits)
		note(run, pair, quality);
	return fits;
}

bool tsc_run_tilt(struct tsc_run *run, const struct tsc_run *second, const struct tsc_pair *third,
		  int64_t tolerance)
{
	struct tsc_run tilted = *run;

	if (!narrow(&tilted, &second->first, slope_fewest, slope_most, tolerance) ||
	    !narrow(&tilted, third, tilted.slope_low, tilted.slope_high, tolerance))
		return false;
	if (tilted.slope_low > -slope_least && tilted.slope_high < slope_least)
		return false;
	note(&tilted, &second->first, second->quality);
	note(&tilted, third, second->quality);
	*run = tilted;
	return true;
}

static bool join_constant(struct tsc_run *run, const struct tsc_run *other, int64_t tolerance)
{
	struct tsc_run joined = *run;
	int64_t by = stray(run, &other->first);

	if (!tsc_run_add(&joined, &other->first, other->quality, tolerance) ||
	    !tsc_run_add(&joined, &other->last, other->quality, tolerance))
		return false;
	joined.count = run->count + other->count;
	joined.sum = run->sum + other->sum + (__int128)by * other->count;
	joined.low = by + other->low < joined.low ? by + other->low : joined.low;
	joined.high = by + other->high > joined.high ? by + other->high : joined.high;
	*run = joined;
	return true;
}

bool tsc_run_join(struct tsc_run *run, const struct tsc_run *other, int64_t tolerance)
{
	struct tsc_run joined = *run;

	if (tsc_run_is_constant(run) && tsc_run_is_constant(other))
		return join_constant(run, other, tolerance);
	/* observations close together look constant on any slope */
	if (tsc_run_is_constant(run)) {
		joined = *other;
		other = run;
	}
	if (!tsc_run_add(&joined, &other->first, other->quality, tolerance) ||
	    !tsc_run_add(&joined, &other->last, other->quality, tolerance))
		return false;
	joined.count = joined.count - 2 + other->count;
	*run = joined;
	return true;
}

uint64_t tsc_run_offset(const struct tsc_run *run)
{
	__int128 count = run->count, twice = 2 * run->sum + count;
	__int128 mean =
		twice >= 0 ? twice / (2 * count) : -((-twice + 2 * count - 1) / (2 * count));

	return (run->first.guest - run->first.host + (uint64_t)mean) & PT_TSC_MASK;
}
