/* What a function prints, as text. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

/** Zero-initialise. */
struct printed {
	FILE *out;
	char *text;
	size_t size;
};

/** A file to print to. */
static inline FILE *printed_begin(struct printed *printed)
{
	free(printed->text);
	printed->text = NULL;
	printed->out = open_memstream(&printed->text, &printed->size);
	if (!printed->out)
		abort();
	return printed->out;
}

/** What was printed since then; until the next one is begun or printed_drop(). */
static inline const char *printed_end(struct printed *printed)
{
	if (fclose(printed->out))
		abort();
	return printed->text;
}

/** Release the text. */
static inline void printed_drop(struct printed *printed)
{
	free(printed->text);
	printed->text = NULL;
}
