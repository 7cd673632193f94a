/* The executable: a table of verbs, and what is common to them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "correlate/cmd_correlate.h"
#include "decode/base/lost_pages.h"
#include "decode/base/options.h"
#include "decode/base/spelling.h"
#include "decode/base/spool.h"
#include "decode/base/verb.h"
#include "decode/cmd_script.h"
#include "host/cmd_check.h"
#include "host/cmd_guest.h"
#include "host/cmd_record.h"

static const struct verb verbs[] = {
	{ "check", cmd_check, "Make a recording", "say whether this host can trace its guests" },
	{ "record", cmd_record, "Make a recording",
	  "trace a guest and its host, and copy their kernels" },
	{ "guest", cmd_guest, "Make a recording", "copy the code and symbols of a guest's kernel" },
	{ "correlate", cmd_correlate, "Look at a recording",
	  "find the TSC offset of each guest, and correct it" },
	{ "script", cmd_script, "Look at a recording", "print what host and guests ran" },
};

enum { VERB_COUNT = sizeof(verbs) / sizeof(verbs[0]) };

static const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < VERB_COUNT; i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static int unknown_verb(const char *name)
{
	struct spelling spelling = { .word = name };

	for (size_t i = 0; i < VERB_COUNT; i++)
		spelling_try(&spelling, verbs[i].name);
	(void)fprintf(stderr, "ptvm: '%s' is not a ptvm command", name);
	if (spelling.nearest)
		(void)fprintf(stderr, ", did you mean '%s'?\n", spelling.nearest);
	else
		(void)fputs("; see 'ptvm --help'\n", stderr);
	return 2;
}

static void print_help(FILE *out)
{
	const char *group = "";

	(void)fputs(
		"Usage: ptvm VERB [OPTION]...\n"
		"Intel PT for virtual machines: what exactly ran, in the host and its guests.\n",
		out);
	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (strcmp(group, verbs[i].group))
			(void)fprintf(out, "\n%s:\n", verbs[i].group);
		group = verbs[i].group;
		(void)fprintf(out, "  %-12s%s\n", verbs[i].name, verbs[i].summary);
	}
	(void)fputs("\n'ptvm VERB --help' lists the options of a verb, 'man ptvm-VERB' explains "
		    "them.\n",
		    out);
}

/* The exit status where all went well: lost output is a failure. `verb` NULL: none. */
static int output_status(const char *verb)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	(void)fprintf(stderr, "ptvm%s%s: cannot write output%s%s\n", verb ? " " : "",
		      verb ? verb : "", errno ? ": " : "",
		      errno ? strerror(errno) : ""); /* of what failed earlier nothing is known */
	return 1;
}

static int exit_status(int r, const char *verb, const struct ptvm_error *error)
{
	if (output_status(verb))
		return 1;
	if (r >= 0 || r == -PTVM_END)
		return r > 0 ? r : 0;
	if (error->code)
		(void)fprintf(stderr, "ptvm %s: %s\n", verb, error->message);
	else if (r == -PTVM_NO_MEMORY && spool_was_full())
		(void)fprintf(stderr,
			      "ptvm %s: no room for temporary files (TMPDIR says where they are)\n",
			      verb);
	else
		(void)fprintf(stderr, "ptvm %s: %s\n", verb,
			      r == -PTVM_NO_MEMORY ? "out of memory" : "failed");
	return r == -PTVM_BAD_USAGE ? 2 : 1;
}

static int run_verb(int argc, char **argv)
{
	const struct verb *verb = verb_find(argv[0]);
	struct ptvm_error error = { 0 };

	if (!verb)
		return unknown_verb(argv[0]);
	return exit_status(verb->run(argc, argv, &error), verb->name, &error);
}

/* `word` is the option, by its letter or what may be the beginning of its name. */
static bool is_option(const char *word, const char *letter, const char *name)
{
	return !strcmp(word, letter) || (strlen(word) > 2 && !strncmp(word, name, strlen(word)));
}

static bool is_help(const char *word)
{
	return is_option(word, "-h", "--help") || !strcmp(word, "help");
}

/* `ptvm help VERB` is `ptvm VERB --help`. */
static int help(int argc, char **argv)
{
	char word[] = "--help";
	char *ask[] = { argv[1], word, NULL };

	if (argc > 2) {
		(void)fprintf(stderr, "ptvm: unexpected argument: %s; see 'ptvm --help'\n",
			      argv[2]);
		return 2;
	}
	if (argc > 1 && !is_help(argv[1]))
		return run_verb(2, ask);
	print_help(stdout);
	return output_status(NULL);
}

/* The verbs by name, for shell completion. */
static int complete(void)
{
	for (size_t i = 0; i < VERB_COUNT; i++)
		(void)printf("%s\t\n", verbs[i].name);
	(void)fputs("help\t\n--help\t\n--version\t\n", stdout);
	return output_status(NULL);
}

static int version(void)
{
	(void)puts("ptvm " PTVM_VERSION);
	return output_status(NULL);
}

/* Whoever called us may have closed standard input or output, whose number the next file that is
 * opened would get, and then what is printed. Writing to what is here instead fails, as it should.
 */
static void fill_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

static void do_nothing(int signal_number)
{
}

/* A file that may not become so large (ulimit -f) is an error like others. Unlike a signal that is
 * ignored, one with a handler is what it was in the programs that we start. */
static void survive_large_files(void)
{
	const struct sigaction action = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };

	(void)sigaction(SIGXFSZ, &action, NULL);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	fill_descriptors();
	/* A closed pipe ends us quietly, also where our parent ignores the signal. */
	(void)signal(SIGPIPE, SIG_DFL);
	/* Who ignores it, which is inherited, never learns how a child ended. */
	(void)signal(SIGCHLD, SIG_DFL);
	lost_pages_survive();
	survive_large_files();
	if (is_help(word))
		return help(argc - 1, argv + 1);
	if (is_option(word, "-V", "--version"))
		return version();
	if (!strcmp(word, "--complete"))
		return complete();
	if (word[0] && word[0] != '-')
		return run_verb(argc - 1, argv + 1);
	if (word[0])
		(void)fprintf(stderr, "ptvm: unknown option: %s; see 'ptvm --help'\n", word);
	else
		print_help(stderr);
	return 2;
}
