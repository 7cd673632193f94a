#include "correlate/tsc_run.h"

#include "decode/base/sort.h"
#include "decode/pt/pt_clock.h"

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
	return (struct tsc_run){ .first = *pair,
				 .last = *pair,
				 .from = pair->host,
				 .count = 1,
				 .quality = quality,
				 .queue = queue };
}

/* How much further the guest's TSC went than the host's, since the first pair. */
static int64_t stray(const struct tsc_run *run, const struct tsc_pair *pair)
{
	return tsc_difference(pair->guest - run->first.guest, pair->host - run->first.host);
}

/* Count in what lies on the line. */
static void take(struct tsc_run *run, const struct tsc_run *other)
{
	if ((int64_t)(other->last.host - run->last.host) > 0)
		run->last = other->last;
	if ((int64_t)(other->from - run->from) < 0)
		run->from = other->from;
	if (other->quality > run->quality)
		run->quality = other->quality;
	run->count += other->count;
}

static bool add_constant(struct tsc_run *run, const struct tsc_run *other, int64_t tolerance)
{
	int64_t by = stray(run, &other->first);
	int64_t low = by + other->low < run->low ? by + other->low : run->low;
	int64_t high = by + other->high > run->high ? by + other->high : run->high;

	if ((uint64_t)high - (uint64_t)low > (uint64_t)tolerance)
		return false;
	run->low = low;
	run->high = high;
	run->sum += other->sum + (__int128)by * other->count;
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

/* Whether the line may be near observations that strayed so far, when the box began or ended: in
 * between it is not kept when they did. */
static bool is_near_box(const struct tsc_run *run, const struct tsc_run *box, int64_t far,
			int64_t tolerance)
{
	const uint64_t hosts[] = { box->first.host, box->last.host };

	for (unsigned i = 0; i < 2; i++) {
		const uint64_t after = hosts[i] - box->first.host;
		const struct tsc_pair corner = { hosts[i],
						 box->first.guest + after + (uint64_t)far };
		struct tsc_run narrowed = *run;

		if (narrow(&narrowed, &corner, run->slope_low, run->slope_high, tolerance))
			return true;
	}
	return false;
}

/* Observations that look constant lie in a box, of which the first and the last are known. */
static bool narrow_by_box(struct tsc_run *run, const struct tsc_run *box, int64_t tolerance)
{
	return narrow(run, &box->first, run->slope_low, run->slope_high, tolerance) &&
	       narrow(run, &box->last, run->slope_low, run->slope_high, tolerance) &&
	       is_near_box(run, box, box->low, tolerance) &&
	       is_near_box(run, box, box->high, tolerance);
}

/* The slopes that both lines may have. */
static bool narrow_by_line(struct tsc_run *run, const struct tsc_run *line, int64_t tolerance)
{
	if (line->slope_low > run->slope_low)
		run->slope_low = line->slope_low;
	if (line->slope_high < run->slope_high)
		run->slope_high = line->slope_high;
	return run->slope_low <= run->slope_high &&
	       narrow(run, &line->first, run->slope_low, run->slope_high, tolerance) &&
	       narrow(run, &line->last, run->slope_low, run->slope_high, tolerance);
}

bool tsc_run_add(struct tsc_run *run, const struct tsc_pair *pair, enum tsc_quality quality,
		 int64_t tolerance)
{
	const struct tsc_run one = tsc_run_begin(pair, quality, run->queue);
	bool fits = tsc_run_is_constant(run)
			    ? add_constant(run, &one, tolerance)
			    : narrow(run, pair, run->slope_low, run->slope_high, tolerance);

	if (fits)
		take(run, &one);
	return fits;
}

bool tsc_run_tilt(struct tsc_run *run, const struct tsc_run *second, const struct tsc_pair *third,
		  int64_t tolerance)
{
	const struct tsc_run last = tsc_run_begin(third, second->quality, second->queue);
	struct tsc_run tilted = *run;

	/* one that stays where it is, and then changes, is no line */
	if (run->count > 1 && run->high - run->low <= tolerance / 2)
		return false;
	tilted.slope_low = slope_fewest;
	tilted.slope_high = slope_most;
	if (!narrow_by_box(&tilted, run, tolerance) || !narrow_by_box(&tilted, second, tolerance) ||
	    !narrow_by_box(&tilted, &last, tolerance))
		return false;
	if (tilted.slope_low > -slope_least && tilted.slope_high < slope_least)
		return false;
	take(&tilted, second);
	take(&tilted, &last);
	*run = tilted;
	return true;
}

/* Of a line and a run that looks constant, as observations close together do on any slope, the line
 * is the one that both are on. */
bool tsc_run_join(struct tsc_run *run, const struct tsc_run *other, int64_t tolerance)
{
	const bool is_box = tsc_run_is_constant(run) && !tsc_run_is_constant(other);
	const struct tsc_run *more = is_box ? run : other;
	struct tsc_run joined = is_box ? *other : *run;
	bool fits;

	if (tsc_run_is_constant(&joined))
		fits = add_constant(&joined, more, tolerance);
	else if (tsc_run_is_constant(more))
		fits = narrow_by_box(&joined, more, tolerance);
	else
		fits = narrow_by_line(&joined, more, tolerance);
	if (!fits)
		return false;
	take(&joined, more);
	*run = joined;
	return true;
}

bool tsc_run_is_better(const struct tsc_run *a, const struct tsc_run *b)
{
	if (a->quality != b->quality)
		return a->quality > b->quality;
	return a->count > b->count;
}

int tsc_run_compare(const void *a, const void *b)
{
	const struct tsc_run *x = a, *y = b;

	if (x->from != y->from)
		return x->from > y->from ? 1 : -1;
	if (x->queue != y->queue)
		return x->queue > y->queue ? 1 : -1;
	return sort_order(x->first.guest, y->first.guest);
}

uint64_t tsc_run_offset(const struct tsc_run *run)
{
	__int128 count = run->count, twice = 2 * run->sum + count;
	__int128 mean =
		twice >= 0 ? twice / (2 * count) : -((-twice + 2 * count - 1) / (2 * count));

	return (run->first.guest - run->first.host + (uint64_t)mean) & PT_TSC_MASK;
}
