/* Options of a verb as a table, from which the parser, --help and shell completion all work.
 *
 *	struct option_row rows[] = {
 *		{ 'i', "input", OPT_STRING, &arg.input, "FILE", "recording to read" },
 *		{ 0, "insn-trace", OPT_STRING, &arg.insns, "raw", "...", .missing = "disasm" },
 *		{ 'F', "fields", OPT_CALL, &arg, "LIST", "fields to print", .call = on_fields },
 *		{ 0, "pager", OPT_FLAG, &arg.pager, NULL, "...", OPTION_NO },
 *		{ 0 },
 *	};
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "decode/base/error.h"

enum option_type {
	OPT_END,
	OPT_HEADING, /* no option: `help` is printed above those that follow */
	OPT_FLAG,    /* sets bool *target */
	OPT_STRING,  /* sets const char **target, which points into argv */
	OPT_U64,     /* sets uint64_t *target; decimal, or hexadecimal after 0x */
	OPT_CALL,    /* calls `call` with target as its context */
};

enum option_flags {
	OPTION_NO = 1,     /* --no-NAME sets false, NULL or 0; not for OPT_CALL */
	OPTION_HIDDEN = 2, /* works, but is not listed */
};

struct option_row {
	char letter;      /* 0: none */
	const char *name; /* NULL: none */
	enum option_type type;
	void *target;
	const char *argument; /* what help calls the argument; NULL: an OPT_CALL without one */
	const char *help;
	unsigned flags;
	const char *missing; /* not NULL: the argument is optional, only joined (--x=1, -x1), and
			      * this is its value when it is not there */
	/* Returns 0 or an error; for -PTVM_BAD_USAGE without a message the parser has one:
	 * that `argument` is what it takes. */
	int (*call)(void *context, const char *value, struct ptvm_error *error);
	const char *values; /* words that an argument may consist of, for completion; NULL: it does
			     * not know any */
};

/** An option of another program, which its users may try here. */
struct refused_option {
	char letter;      /* 0: none */
	const char *name; /* in full; NULL ends a table */
	const char *why;  /* it is not here, or what does its work */
};

struct options {
	const char *usage;   /* "ptvm script [OPTION]..."; the first two words ask for help */
	const char *summary; /* sentences below the usage line */
	const struct option_row *rows;
	bool takes_command; /* options end where a command begins, as `ls -l`, which may follow
			     * `--`; otherwise nothing but options is taken */
	const struct refused_option *refused; /* not listed; NULL: none */
};

/**
 * Parse a verb's arguments.
 *
 * Long options may be shortened while they stay unique, also among those of the other program, and
 * take their argument as --x=1 or --x 1; letters take it as -x1 or -x 1, and those without one may
 * be joined (-ab). `--` ends options.
 *
 * @argc, argv  argv[0] is skipped
 * @out         where --help (-h, unless the table has it) and the hidden --complete are answered
 *
 * Returns how many words at the end of argv are the command, -PTVM_END when --help or --complete
 * was answered, or -PTVM_BAD_USAGE with a message of one sentence.
 */
int options_parse(const struct options *options, int argc, char **argv, FILE *out,
		  struct ptvm_error *error);

/** Print the usage line, the summary and the list of options. */
void options_print_help(const struct options *options, FILE *out);

/**
 * Print the options for shell completion, one a line: a word to complete, `=` at its end where it
 * takes an argument; the argument's name; the option's letter, `-x`; words for the argument.
 * Between them are tabs.
 */
void options_print_words(const struct options *options, FILE *out);
