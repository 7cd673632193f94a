/* The argument of --time, in the grammar of perf 6.1.
 *
 * Without a % it is one or more START,STOP, in rising order, with blanks between them: seconds with
 * up to nine digits of fraction, where a missing STOP (or 0, as perf has it) is the end of time.
 * With one, it is parts of the recording: N%/I is the I-th slice of N per cent and A%-B% what lies
 * between, both also in lists with commas; N% is the first slice.
 */
#include "decode/pt/time_ranges.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_SECOND = 1000000000, FRACTION_DIGITS = 9 };

static const char digits[] = "0123456789";
static const char blanks[] = " \t\n\v\f\r";

static void skip_blanks(const char **text)
{
	*text += strspn(*text, blanks);
}

bool time_ranges_have_percent(const char *text)
{
	return strchr(text, '%');
}

/* The digits behind the point, as ns. */
static int read_fraction(const char **text, uint64_t *ret_ns)
{
	size_t length = strspn(*text, digits);

	if (length > FRACTION_DIGITS)
		return -PTVM_BAD_USAGE;
	*ret_ns = 0;
	for (size_t i = 0; i < FRACTION_DIGITS; i++)
		*ret_ns = *ret_ns * 10 + (i < length ? (uint64_t)((*text)[i] - '0') : 0);
	*text += length;
	return 0;
}

/* A time in seconds, 0 where there is none. */
static int read_time(const char **text, uint64_t *ret_ns)
{
	uint64_t seconds = 0, fraction = 0;
	char *end;

	if (isdigit((unsigned char)**text)) {
		errno = 0;
		seconds = strtoull(*text, &end, 10);
		*text = end;
		if (errno)
			return -PTVM_BAD_USAGE;
	}
	if (**text == '.') {
		++*text;
		if (read_fraction(text, &fraction) < 0)
			return -PTVM_BAD_USAGE;
	}
	if (__builtin_mul_overflow(seconds, (uint64_t)NS_PER_SECOND, &seconds) ||
	    __builtin_add_overflow(seconds, fraction, ret_ns))
		return -PTVM_BAD_USAGE;
	return 0;
}

/* START,STOP; a blank is allowed behind the comma. */
static int read_times(const char **text, struct time_range *ret)
{
	if (read_time(text, &ret->from) < 0 || *(*text)++ != ',')
		return -PTVM_BAD_USAGE;
	skip_blanks(text); /* so only the last range can be without its end */
	if (read_time(text, &ret->to) < 0)
		return -PTVM_BAD_USAGE;
	if (!ret->to)
		ret->to = UINT64_MAX;
	return ret->to < ret->from ? -PTVM_BAD_USAGE : 0;
}

static bool is_after_all(const struct time_ranges *ranges, uint64_t from)
{
	return !ranges->count || from > ranges->items[ranges->count - 1].to;
}

static int parse_times(const char *text, struct time_ranges *ranges)
{
	do {
		struct time_range range;

		skip_blanks(&text);
		if (ranges->count == TIME_RANGES_MAX || read_times(&text, &range) < 0 ||
		    !is_after_all(ranges, range.from) || (*text && !isspace((unsigned char)*text)))
			return -PTVM_BAD_USAGE;
		ranges->items[ranges->count++] = range;
	} while (*text);
	return 0;
}

/* A number with its %, as a part of 1. */
static int read_percent(const char **text, double *ret)
{
	size_t length;
	char *end;

	skip_blanks(text);
	length = strspn(*text, "0123456789.");
	if (!length)
		return -PTVM_BAD_USAGE;
	*ret = strtod(*text, &end) / 100.0;
	if (end != *text + length || *end != '%')
		return -PTVM_BAD_USAGE;
	*text = end + 1;
	return *ret > 1.0 ? -PTVM_BAD_USAGE : 0;
}

/* `part` (0 to 1) of `total`, rounded to the nearest. */
static uint64_t part_of(double part, uint64_t total)
{
	double exact = part * (double)total;
	uint64_t whole;

	if (exact >= (double)total)
		return total;
	whole = (uint64_t)exact;
	return whole + (exact - (double)whole >= 0.5);
}

/* Which part of the recording N%/I, A%-B% or N% is. */
static int read_part(const char **text, double *ret_from, double *ret_to)
{
	double percent;
	unsigned long slice = 1;
	char *end;

	if (read_percent(text, &percent) < 0)
		return -PTVM_BAD_USAGE;
	if (**text == '-') {
		++*text;
		*ret_from = percent;
		return read_percent(text, ret_to);
	}
	if (**text == '/') {
		++*text;
		if (!isdigit((unsigned char)**text))
			return -PTVM_BAD_USAGE;
		slice = strtoul(*text, &end, 10);
		*text = end;
	} else if (**text) { /* in `10%,20%` it is not clear what the second is */
		return -PTVM_BAD_USAGE;
	}
	if (!slice || percent <= 0.0)
		return -PTVM_BAD_USAGE;
	*ret_from = percent * (double)(slice - 1);
	*ret_to = percent * (double)slice;
	return 0;
}

/* A part that does not reach the end leaves its last ns to the part that follows. */
static int read_part_range(const char **text, uint64_t first, uint64_t last, struct time_range *ret)
{
	double from, to;

	if (read_part(text, &from, &to) < 0 || to > 1.0 || from > to)
		return -PTVM_BAD_USAGE;
	ret->from = first + part_of(from, last - first);
	ret->to = first + part_of(to, last - first);
	if (ret->to > ret->from && ret->to != last)
		ret->to--;
	return 0;
}

static int parse_parts(const char *text, uint64_t first, uint64_t last, struct time_ranges *ranges)
{
	do {
		struct time_range *range = &ranges->items[ranges->count];

		if (ranges->count == TIME_RANGES_MAX ||
		    read_part_range(&text, first, last, range) < 0 || (*text && *text != ','))
			return -PTVM_BAD_USAGE;
		ranges->count++;
		text += *text == ',';
	} while (*text);
	return 0;
}

int time_ranges_parse(const char *text, uint64_t first, uint64_t last, struct time_ranges *ret,
		      struct ptvm_error *error)
{
	struct time_ranges ranges = { .count = 0 };
	int r;

	if (!time_ranges_have_percent(text))
		r = parse_times(text, &ranges);
	else if (first <= last)
		r = parse_parts(text, first, last, &ranges);
	else
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "--time=%s: the recording ends before it begins", text);
	if (r < 0 && ranges.count == TIME_RANGES_MAX)
		return ptvm_fail(error, PTVM_BAD_USAGE, "more than %d ranges in --time: '%s'",
				 TIME_RANGES_MAX, text);
	if (r < 0)
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "--time takes FROM,TO in seconds, rising, or 10%%-20%%, not '%s'",
				 text);
	*ret = ranges;
	return 0;
}

bool time_ranges_have(const struct time_ranges *ranges, uint64_t time_ns)
{
	for (unsigned i = 0; i < ranges->count; i++)
		if (time_ns >= ranges->items[i].from && time_ns <= ranges->items[i].to)
			return true;
	return !ranges->count;
}
