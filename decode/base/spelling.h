/* A name for a word that is none, but nearly: "did you mean". */
#pragma once

#include <stddef.h>

/** Fill in the word, and zero the rest. */
struct spelling {
	const char *word;
	const char *nearest; /* of the names that were tried; NULL: none is near */
	size_t distance;     /* of that one */
};

/** Try a name: it is near where few letters of the word have to be changed. It is borrowed. */
void spelling_try(struct spelling *spelling, const char *name);
