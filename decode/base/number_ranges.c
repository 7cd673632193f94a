#include "decode/base/number_ranges.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* Decimal, or hexadecimal after 0x; a leading zero does not make it octal. */
static int read_number(const char **text, int64_t *ret)
{
	const char *digits = *text + (**text == '-');
	bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
	char *end;

	if (!isdigit((unsigned char)*digits) || (hex && !isxdigit((unsigned char)digits[2])))
		return -PTVM_BAD_USAGE;
	errno = 0;
	*ret = strtoll(*text, &end, hex ? 16 : 10);
	*text = end;
	return errno ? -PTVM_BAD_USAGE : 0;
}

/* One number or range, up to a comma or the end. */
static int read_range(const char **text, struct number_range *ret)
{
	if (read_number(text, &ret->from) < 0)
		return -PTVM_BAD_USAGE;
	ret->to = ret->from;
	if (**text == '-') {
		++*text;
		if (read_number(text, &ret->to) < 0 || ret->to < ret->from)
			return -PTVM_BAD_USAGE;
	}
	return **text && **text != ',' ? -PTVM_BAD_USAGE : 0;
}

int number_ranges_parse(const char *option, const char *text, struct number_ranges *ret,
			struct ptvm_error *error)
{
	struct number_ranges ranges = { .count = 0 };
	const char *p = text;

	do {
		if (ranges.count == NUMBER_RANGES_MAX)
			return ptvm_fail(error, PTVM_BAD_USAGE,
					 "%s: more than %d numbers or ranges: '%s'", option,
					 NUMBER_RANGES_MAX, text);
		if (read_range(&p, &ranges.items[ranges.count]) < 0)
			return ptvm_fail(error, PTVM_BAD_USAGE,
					 "%s takes numbers and ranges, as 0,2-3 or 0x1f, not '%s'",
					 option, text);
		ranges.count++;
	} while (*p++);
	*ret = ranges;
	return 0;
}
