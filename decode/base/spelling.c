#include "decode/base/spelling.h"

#include <string.h>

enum { NEAR = 2, NAME_MAX_LENGTH = 32 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters to insert, drop or change to make `b` of `a` (Levenshtein). */
static size_t distance(const char *a, const char *b, size_t width)
{
	size_t row[NAME_MAX_LENGTH + 1];
	size_t diagonal, above;

	for (size_t i = 0; i <= width; i++)
		row[i] = i;
	for (; *a; a++) {
		diagonal = row[0]++;
		for (size_t i = 1; i <= width; i++) {
			above = row[i];
			row[i] = least(diagonal + (*a != b[i - 1]), least(above, row[i - 1]) + 1);
			diagonal = above;
		}
	}
	return row[width];
}

void spelling_try(struct spelling *spelling, const char *name)
{
	const size_t length = strlen(name);
	size_t far;

	if (length > NAME_MAX_LENGTH)
		return;
	far = distance(spelling->word, name, length);
	if (far > NEAR || 2 * far > length || (spelling->nearest && far >= spelling->distance))
		return;
	spelling->nearest = name;
	spelling->distance = far;
}
