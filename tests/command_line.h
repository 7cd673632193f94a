/* The words of a command line, as main() gets them: nothing in them is constant. */
#pragma once

#include <assert.h>
#include <stdio.h>

enum { COMMAND_LINE_WORDS = 16 };

struct command_line {
	char words[COMMAND_LINE_WORDS][200];
	char *argv[COMMAND_LINE_WORDS + 1];
	int argc;
};

/** Make one of `words`, which end with NULL; longer ones are cut. */
static inline void command_line_make(struct command_line *ret, const char *const *words)
{
	for (ret->argc = 0; words[ret->argc]; ret->argc++) {
		assert(ret->argc < COMMAND_LINE_WORDS);
		ret->argv[ret->argc] = ret->words[ret->argc];
		(void)snprintf(ret->words[ret->argc], sizeof(ret->words[0]), "%s",
			       words[ret->argc]);
	}
	ret->argv[ret->argc] = NULL;
}
