/* The argument of --itrace, in the grammar of perf 6.1.
 *
 * It is a row of letters. Some take a number (i with a unit, s, g, l) or flags (e and d: each a
 * small letter behind + or -). Blanks and commas may stand between letters, and between i, its
 * number and its unit. `c` and `r` make branches as `b` does but only calls or only returns, so
 * that `bc` is calls alone. A flag that takes away wins over the same flag that adds, wherever they
 * stand.
 */
#include "decode/print/itrace.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_PERIOD_NS = 100000 };

void itrace_default(struct itrace *ret)
{
	*ret = (struct itrace){
		.branches = true,
		.calls = true,
		.errors = true,
		.transactions = true,
		.ptwrites = true,
		.power = true,
		.interrupts = true,
		.period_unit = PERIOD_INSNS,
		.period = 1,
		.error_overflow = true,
		.error_lost = true,
	};
}

static void skip_separators(const char **text)
{
	*text += strspn(*text, " ,");
}

static int read_number(const char **text, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return -PTVM_BAD_USAGE;
	errno = 0;
	*ret = strtoull(*text, &end, 10);
	*text = end;
	return errno ? -PTVM_BAD_USAGE : 0;
}

/* The unit behind the number of i; at the end of the text it may be missing. */
static int read_unit(const char **text, struct itrace *itrace)
{
	static const struct {
		const char *name;
		unsigned unit, factor;
	} units[] = {
		{ "i", PERIOD_INSNS, 1 },  { "t", PERIOD_TICKS, 1 },     { "ns", PERIOD_NS, 1 },
		{ "us", PERIOD_NS, 1000 }, { "ms", PERIOD_NS, 1000000 },
	};

	if (!**text)
		return 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t length = strlen(units[i].name);

		if (strncmp(*text, units[i].name, length))
			continue;
		*text += length;
		itrace->period_unit = units[i].unit;
		if (__builtin_mul_overflow(itrace->period, units[i].factor, &itrace->period))
			return -PTVM_BAD_USAGE;
		return 0;
	}
	return -PTVM_BAD_USAGE;
}

static int read_period(const char **text, struct itrace *itrace)
{
	skip_separators(text);
	if (!isdigit((unsigned char)**text))
		return 0;
	if (read_number(text, &itrace->period) < 0)
		return -PTVM_BAD_USAGE;
	skip_separators(text);
	return read_unit(text, itrace);
}

/* The number behind g, l, G or L, which may be missing. */
static int read_size(const char **text, unsigned missing, unsigned *ret)
{
	enum { MOST = 1024 };
	uint64_t size = missing;

	skip_separators(text);
	if (isdigit((unsigned char)**text) && read_number(text, &size) < 0)
		return -PTVM_BAD_USAGE;
	*ret = (unsigned)size;
	return size && size <= MOST ? 0 : -PTVM_BAD_USAGE;
}

/* Flags behind e or d; those with - are added to `without`, a bit for each letter. */
static int read_flags(const char **text, uint32_t *without)
{
	for (;;) {
		char sign;

		*text += strspn(*text, " ");
		sign = **text;
		if (sign != '+' && sign != '-')
			return 0;
		++*text;
		*text += strspn(*text, " ");
		if (**text < 'a' || **text > 'z')
			return -PTVM_BAD_USAGE;
		if (sign == '-')
			*without |= 1U << (**text - 'a');
		++*text;
	}
}

/* A letter that has neither number nor flags; false for one that does not exist. */
static bool plain_letter(char letter, struct itrace *itrace)
{
	switch (letter) {
	case 'b': itrace->branches = true; break;
	case 'c': itrace->branches = itrace->calls = true; break;
	case 'r': itrace->branches = itrace->returns = true; break;
	case 'x': itrace->transactions = true; break;
	case 'w': itrace->ptwrites = true; break;
	case 'p': itrace->power = true; break;
	case 'I': itrace->interrupts = true; break;
	case 'A': itrace->approximate_ipc = true; break;
	case 'Z': itrace->timeless = true; break;
	case 'o': itrace->pebs = true; break;
	case 'q': itrace->quick++; break;
	case 'f': /* caches, TLBs, memory: as in perf, of no effect on Intel PT */
	case 'm':
	case 'M':
	case 't':
	case 'a':
	case ' ':
	case ',': break;
	default: return false;
	}
	return true;
}

static int read_letter(const char **text, struct itrace *itrace, uint32_t *without_errors)
{
	enum { CHAIN = 16, LAST_BRANCHES = 64 }; /* as many as perf has */
	uint32_t without_logs = 0;               /* flags of perf's debug log mean nothing here */
	char letter = *(*text)++;

	switch (letter) {
	case 'i': itrace->instructions = true; return read_period(text, itrace);
	case 'e': itrace->errors = true; return read_flags(text, without_errors);
	case 'd': return read_flags(text, &without_logs);
	case 'g': return read_size(text, CHAIN, &itrace->chain);
	case 'l': return read_size(text, LAST_BRANCHES, &itrace->last_branches);
	case 'G': return read_size(text, CHAIN, &itrace->samples.calls);
	case 'L': return read_size(text, LAST_BRANCHES, &itrace->samples.branches);
	case 's': *text += strspn(*text, " "); return read_number(text, &itrace->skip);
	default: return plain_letter(letter, itrace) ? 0 : -PTVM_BAD_USAGE;
	}
}

/* What a letter takes, for those whose argument went wrong. */
static const char *letter_takes(char letter)
{
	switch (letter) {
	case 'i': return "i takes a number of i, t, ms, us or ns, as i10us";
	case 'e':
	case 'd': return "flags are small letters behind + or -, as e-o-l";
	case 'g':
	case 'l':
	case 'G':
	case 'L': return "g, l, G and L take a number from 1 to 1024";
	case 's': return "s takes a number, as s100";
	default: return "the letters are i b c r e p w x I s g l G L q A Z";
	}
}

static int read_letters(const char *text, struct itrace *itrace, struct ptvm_error *error)
{
	uint32_t without_errors = 0;

	for (const char *p = text; *p;) {
		const char *letter = p;

		if (read_letter(&p, itrace, &without_errors) < 0)
			return ptvm_fail(error, PTVM_BAD_USAGE, "--itrace at '%s': %s", letter,
					 letter_takes(*letter));
	}
	if (strchr(text, 'e')) {
		itrace->error_overflow = !(without_errors & 1U << ('o' - 'a'));
		itrace->error_lost = !(without_errors & 1U << ('l' - 'a'));
	}
	return 0;
}

int itrace_add(const char *text, struct itrace *itrace, struct ptvm_error *error)
{
	struct itrace sum = *itrace;
	int r;

	if (!text[strspn(text, " ,")]) {
		itrace_default(itrace);
		itrace->instructions = sum.instructions;
		return 0;
	}
	sum.period_unit = PERIOD_NS;
	sum.period = DEFAULT_PERIOD_NS;
	r = read_letters(text, &sum, error);
	if (r < 0)
		return r;
	if (!sum.period) /* 0 of any unit: every instruction */
		sum.period_unit = PERIOD_NS;
	*itrace = sum;
	return 0;
}
