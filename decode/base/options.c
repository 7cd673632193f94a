#include "decode/base/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/spelling.h"

enum { HELP_COLUMN = 30, HELP_WIDTH = 80 };

struct parser {
	const struct options *options;
	char **argv;
	int argc, next;
	struct ptvm_error *error;
};

/* An option as the user wrote it. */
struct given {
	const struct option_row *row;
	const char *spelt; /* "--cpu" or "-C", for messages */
	const char *value; /* joined to it; NULL none */
	bool negated;
};

static bool takes_value(const struct option_row *row)
{
	return row->type == OPT_STRING || row->type == OPT_U64 || row->argument;
}

static bool is_option(const struct option_row *row)
{
	return row->type != OPT_HEADING;
}

static int bad_usage(struct parser *parser, const char *what, const char *spelt)
{
	return ptvm_fail(parser->error, PTVM_BAD_USAGE, "%s: %s", what, spelt);
}

/* With the way to a list of what there is; a usage line begins with the program and its verb. */
static int unknown(struct parser *parser, const char *what, const char *spelt, const char *hint)
{
	const char *usage = parser->options->usage;
	size_t program = strcspn(usage, " ") + 1;
	size_t verb = strcspn(usage + program, " ");

	return ptvm_fail(parser->error, PTVM_BAD_USAGE, "%s: %s; %ssee '%.*s --help'", what, spelt,
			 hint, (int)(program + verb), usage);
}

static int bad_value(struct parser *parser, const struct given *given, const char *value)
{
	const struct option_row *row = given->row;

	return ptvm_fail(parser->error, PTVM_BAD_USAGE, "%s takes %s, not '%s'", given->spelt,
			 row->type == OPT_U64 ? "a number" : row->argument, value);
}

static int set_u64(uint64_t *target, const char *value)
{
	bool is_hex = value[0] == '0' && (value[1] | 32) == 'x';
	const char *digits = is_hex ? value + 2 : value;
	char *end;

	if (!isxdigit((unsigned char)*digits))
		return -PTVM_BAD_USAGE;
	errno = 0;
	*target = strtoull(value, &end, is_hex ? 16 : 10);
	return *end || errno ? -PTVM_BAD_USAGE : 0;
}

/* No file is called "": that comes of a shell's variable that is not set. A directory may be: it is
 * this one, or none. */
static bool is_nothing(const struct option_row *row, const char *value)
{
	return value && !*value && row->argument && !strncmp(row->argument, "FILE", 4);
}

static void negate(const struct option_row *row)
{
	assert(row->type != OPT_CALL);
	if (row->type == OPT_FLAG)
		*(bool *)row->target = false;
	else if (row->type == OPT_STRING)
		*(const char **)row->target = NULL;
	else
		*(uint64_t *)row->target = 0;
}

static int store(const struct option_row *row, const char *value, struct ptvm_error *error)
{
	switch (row->type) {
	case OPT_FLAG: *(bool *)row->target = true; return 0;
	case OPT_STRING: *(const char **)row->target = value; return 0;
	case OPT_U64: return set_u64(row->target, value);
	default: return row->call(row->target, value, error);
	}
}

/* Find the value of an option and act on both. */
static int apply(struct parser *parser, const struct given *given)
{
	const struct option_row *row = given->row;
	const char *value = given->value;
	int r;

	if (value && (given->negated || !takes_value(row)))
		return bad_usage(parser, "option takes no argument", given->spelt);
	if (given->negated) {
		negate(row);
		return 0;
	}
	if (!value && takes_value(row)) {
		value = row->missing;
		if (!value && parser->next < parser->argc)
			value = parser->argv[parser->next++];
	}
	if (takes_value(row) && (!value || is_nothing(row, value)))
		return bad_usage(parser, "option needs an argument", given->spelt);
	r = store(row, value, parser->error);
	if (r == -PTVM_BAD_USAGE)
		(void)bad_value(parser, given, value);
	return r < 0 ? r : 0;
}

/* One answer per run: the caller has nothing more to do. */
static int answer(struct parser *parser, const char *word, FILE *out)
{
	if (!strcmp(word, "--complete"))
		options_print_words(parser->options, out);
	else if (!strcmp(word, "--help"))
		options_print_help(parser->options, out);
	else
		return 0;
	return -PTVM_END;
}

/* How well `word`, `length` bytes long, names `name`: 0 not at all, 1 its beginning, 2 all of it.
 */
static int match(const char *name, const char *word, size_t length)
{
	if (strncmp(name, word, length))
		return 0;
	return name[length] ? 1 : 2;
}

static int match_row(const struct option_row *row, const char *word, size_t length, bool *negated)
{
	int plain = match(row->name, word, length);
	int no = 0;

	if (row->flags & OPTION_NO && length > 3 && !strncmp(word, "no-", 3))
		no = match(row->name, word + 3, length - 3);
	*negated = no > plain;
	return *negated ? no : plain;
}

/* What a word may stand for, as far as it has been looked. */
struct candidate {
	const struct option_row *row;         /* either of them */
	const struct refused_option *refused; /* is it */
	bool negated;
	const char *name, *other; /* NULL: it stands for no other one */
	int how;                  /* as match() */
};

/* Whether a name that the word matches so well is what it stands for now. */
static bool is_better(struct candidate *best, int how, const char *name)
{
	if (how && how == best->how && !best->other)
		best->other = name;
	if (how <= best->how)
		return false;
	*best = (struct candidate){ .name = name, .how = how };
	return true;
}

static struct candidate find_candidate(const struct options *options, const char *word,
				       size_t length)
{
	const struct refused_option *refused = options->refused;
	struct candidate best = { 0 };
	bool negated = false;

	for (const struct option_row *row = options->rows; row->type != OPT_END; row++) {
		int how = is_option(row) && row->name ? match_row(row, word, length, &negated) : 0;

		if (is_better(&best, how, row->name)) {
			best.row = row;
			best.negated = negated;
		}
	}
	for (; refused && refused->name; refused++)
		if (is_better(&best, match(refused->name, word, length), refused->name))
			best.refused = refused;
	return best;
}

/* Tell why an option of another program is not here. */
static int refuse(struct parser *parser, const struct refused_option *option, const char *spelt)
{
	return ptvm_fail(parser->error, PTVM_BAD_USAGE, "%s is not here: %s", spelt, option->why);
}

/* The row that a long option names, exactly or as the only one that begins so; none is no error. */
static int find_long(struct parser *parser, const char *word, size_t length, struct given *given)
{
	struct candidate found = find_candidate(parser->options, word, length);

	if (found.other)
		return ptvm_fail(parser->error, PTVM_BAD_USAGE,
				 "ambiguous option: --%.*s (--%s or --%s)", (int)length, word,
				 found.name, found.other);
	if (found.refused)
		return refuse(parser, found.refused, given->spelt);
	given->row = found.row;
	given->negated = found.negated;
	return 0;
}

static int unknown_long(struct parser *parser, const char *spelt)
{
	struct spelling spelling = { .word = spelt + 2 };
	const struct option_row *row;

	for (row = parser->options->rows; row->type != OPT_END; row++)
		if (is_option(row) && row->name && !(row->flags & OPTION_HIDDEN))
			spelling_try(&spelling, row->name);
	if (!spelling.nearest)
		return unknown(parser, "unknown option", spelt, "");
	return ptvm_fail(parser->error, PTVM_BAD_USAGE, "unknown option: %s, did you mean --%s?",
			 spelt, spelling.nearest);
}

static int parse_long(struct parser *parser, const char *word, FILE *out)
{
	size_t length = strcspn(word, "=");
	struct given given = { .value = word[length] ? word + length + 1 : NULL };
	char spelt[64];
	int r;

	(void)snprintf(spelt, sizeof(spelt), "--%.*s", (int)length, word);
	given.spelt = spelt;
	r = answer(parser, spelt, out);
	if (!r)
		r = find_long(parser, word, length, &given);
	if (r || given.row)
		return r ? r : apply(parser, &given);
	return match("help", word, length) ? answer(parser, "--help", out)
					   : unknown_long(parser, spelt);
}

static const struct option_row *find_letter(const struct options *options, char letter)
{
	const struct option_row *row;

	for (row = options->rows; row->type != OPT_END; row++)
		if (is_option(row) && row->letter == letter)
			return row;
	return NULL;
}

static const struct refused_option *find_refused(const struct options *options, char letter)
{
	const struct refused_option *option = options->refused;

	while (option && option->name && option->letter != letter)
		option++;
	return option && option->name ? option : NULL;
}

static int parse_letters(struct parser *parser, const char *letters, FILE *out)
{
	const struct refused_option *refused;
	char spelt[] = { '-', 0, 0 };
	struct given given = { .spelt = spelt };
	int r;

	for (; *letters; letters++) {
		spelt[1] = *letters;
		given.row = find_letter(parser->options, *letters);
		if (!given.row && *letters == 'h')
			return answer(parser, "--help", out);
		if (!given.row) {
			refused = find_refused(parser->options, *letters);
			return refused ? refuse(parser, refused, spelt)
				       : unknown(parser, "unknown option", spelt, "");
		}
		given.value = takes_value(given.row) && letters[1] ? letters + 1 : NULL;
		r = apply(parser, &given);
		if (r || given.value)
			return r;
	}
	return 0;
}

int options_parse(const struct options *options, int argc, char **argv, FILE *out,
		  struct ptvm_error *error)
{
	struct parser parser = { options, argv, argc, 1, error };
	int r = 0;

	while (!r && parser.next < argc) {
		const char *word = argv[parser.next];

		if (word[0] != '-' || !word[1])
			break;
		parser.next++;
		if (!strcmp(word, "--"))
			break;
		r = word[1] == '-' ? parse_long(&parser, word + 2, out)
				   : parse_letters(&parser, word + 1, out);
	}
	if (!r && parser.next < argc && !options->takes_command)
		return unknown(&parser, "unexpected argument", argv[parser.next],
			       find_letter(options, 'i') ? "name a file with -i, or " : "");
	return r ? r : argc - parser.next;
}

/* Print `text` from the help column on, broken between words. */
static void print_wrapped(const char *text, int column, FILE *out)
{
	size_t length;

	if (column >= HELP_COLUMN - 1) {
		(void)fputc('\n', out);
		column = 0;
	}
	(void)fprintf(out, "%*s", HELP_COLUMN - column, "");
	column = HELP_COLUMN;
	for (; *text; text += length + strspn(text + length, " ")) {
		length = strcspn(text, " ");
		if (column > HELP_COLUMN && column + 1 + (int)length > HELP_WIDTH) {
			(void)fprintf(out, "\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		}
		column +=
			fprintf(out, "%s%.*s", column > HELP_COLUMN ? " " : "", (int)length, text);
	}
	(void)fputc('\n', out);
}

/* The argument as help shows it: " N" after a letter, "=N" after a name, "[=N]" if optional. */
static int print_argument(const struct option_row *row, FILE *out)
{
	const char *joint = row->name ? "=" : "";

	if (!takes_value(row))
		return 0;
	if (row->missing)
		return fprintf(out, "[%s%s]", joint, row->argument);
	return fprintf(out, "%s%s", row->name ? joint : " ", row->argument);
}

static void print_option(const struct option_row *row, FILE *out)
{
	int column = row->letter ? fprintf(out, "  -%c", row->letter) : fprintf(out, "    ");

	if (row->name)
		column += fprintf(out, "%s--%s%s", row->letter ? ", " : "  ",
				  row->flags & OPTION_NO ? "[no-]" : "", row->name);
	column += print_argument(row, out);
	print_wrapped(row->help, column, out);
}

void options_print_help(const struct options *options, FILE *out)
{
	const struct option_row *row;

	(void)fprintf(out, "Usage: %s\n%s\n", options->usage, options->summary);
	if (is_option(options->rows))
		(void)fputc('\n', out);
	for (row = options->rows; row->type != OPT_END; row++) {
		if (!is_option(row))
			(void)fprintf(out, "\n%s:\n", row->help);
		else if (!(row->flags & OPTION_HIDDEN))
			print_option(row, out);
	}
	print_wrapped("print this help",
		      fprintf(out, "%s--help", find_letter(options, 'h') ? "      " : "  -h, "),
		      out);
}

void options_print_words(const struct options *options, FILE *out)
{
	const struct option_row *row;

	for (row = options->rows; row->type != OPT_END; row++) {
		if (!is_option(row) || row->flags & OPTION_HIDDEN || !row->name)
			continue;
		(void)fprintf(out, "--%s%s\t%s\t", row->name,
			      takes_value(row) && !row->missing ? "=" : "",
			      row->argument ? row->argument : "");
		if (row->letter)
			(void)fprintf(out, "-%c", row->letter);
		(void)fprintf(out, "\t%s\n", row->values ? row->values : "");
		if (row->flags & OPTION_NO)
			(void)fprintf(out, "--no-%s\t\t\t\n", row->name);
	}
	(void)fputs("--help\t\t-h\t\n", out);
}
