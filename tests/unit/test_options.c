#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/cleanup.h"
#include "decode/base/options.h"

enum { MAX_WORDS = 16, MAX_CALLS = 4 };

struct arg {
	const char *input, *insns;
	uint64_t cpu;
	bool pager, ns, quiet, secret;
	const char *fields[MAX_CALLS];
	int field_count;
};

/* One run of the parser: its arguments and its results. */
struct run {
	struct arg arg;
	char text[256];
	char *argv[MAX_WORDS];
	int result;
	char output[2048];
	struct ptvm_error error;
};

static int on_fields(void *context, const char *value, struct ptvm_error *error)
{
	struct arg *arg = context;

	if (!strcmp(value, "bad"))
		return -PTVM_BAD_USAGE;
	if (!strcmp(value, "worse"))
		return ptvm_fail(error, PTVM_BAD_USAGE, "no field is called %s", value);
	assert_true(arg->field_count < MAX_CALLS);
	arg->fields[arg->field_count++] = value;
	return 0;
}

/* Parse `line`, words between blanks, with a table that has one of everything. */
static void parse(struct run *run, const char *line, bool takes_command)
{
	struct arg *arg = &run->arg;
	const struct option_row rows[] = {
		{ .type = OPT_HEADING, .help = "What" },
		{ 'i', "input", OPT_STRING, &arg->input, "FILE", "recording to read" },
		{ 0, "insn-trace", OPT_STRING, &arg->insns, "raw", "print instructions",
		  .missing = "disasm" },
		{ 'C', "cpu", OPT_U64, &arg->cpu, "N", "only this CPU" },
		{ 'F', "fields", OPT_CALL, arg, "LIST", "fields to print", .call = on_fields,
		  .values = "ip sym" },
		{ 0, "pager", OPT_FLAG, &arg->pager, NULL, "use a pager", OPTION_NO },
		{ 'n', "ns", OPT_FLAG, &arg->ns, NULL, "print nanoseconds" },
		{ 'q', NULL, OPT_FLAG, &arg->quiet, NULL, "say less" },
		{ 0, "secret", OPT_FLAG, &arg->secret, NULL, "", OPTION_HIDDEN },
		{ 0 },
	};
	const struct refused_option refused[] = { { 'S', "inline", "use --ns" },
						  { 0, "fuzzy", "use --fields" },
						  { 0 } };
	const struct options options = { "ptvm try [OPTION]...", "Tries.", rows, takes_command,
					 refused };
	_cleanup_fclose_ FILE *out = fmemopen(run->output, sizeof(run->output), "w");
	int argc = 0;
	char *save;

	(void)snprintf(run->text, sizeof(run->text), "try %s", line);
	for (char *word = strtok_r(run->text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		run->argv[argc++] = word;
	run->result = options_parse(&options, argc, run->argv, out, &run->error);
}

static void assert_refused(const char *line, const char *message)
{
	struct run run = { 0 };

	parse(&run, line, false);
	assert_int_equal(run.result, -PTVM_BAD_USAGE);
	assert_string_equal(run.error.message, message);
}

static void arguments_are_joined_or_follow(void **state)
{
	const char *const lines[] = {
		"-C 12 -i file",         "-C12 -ifile",         "--cpu 12 --input file",
		"--cpu=12 --input=file", "--cp=0xc --inp file",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct run run = { 0 };

		parse(&run, lines[i], false);
		assert_int_equal(run.result, 0);
		assert_int_equal(run.arg.cpu, 12);
		assert_string_equal(run.arg.input, "file");
	}
}

static void letters_without_argument_may_be_joined(void **state)
{
	struct run run = { 0 };

	parse(&run, "-nqC3", false);
	assert_int_equal(run.result, 0);
	assert_true(run.arg.ns && run.arg.quiet);
	assert_int_equal(run.arg.cpu, 3);
}

static void an_optional_argument_must_be_joined(void **state)
{
	struct run plain = { 0 }, joined = { 0 };

	parse(&plain, "--insn-trace raw", true);
	assert_int_equal(plain.result, 1);
	assert_string_equal(plain.arg.insns, "disasm");
	parse(&joined, "--insn-trace=raw", false);
	assert_int_equal(joined.result, 0);
	assert_string_equal(joined.arg.insns, "raw");
}

static void an_argument_may_begin_with_a_dash(void **state)
{
	struct run run = { 0 };

	parse(&run, "-F -comm -F+insn,-tid -i -", false);
	assert_int_equal(run.result, 0);
	assert_int_equal(run.arg.field_count, 2);
	assert_string_equal(run.arg.fields[0], "-comm");
	assert_string_equal(run.arg.fields[1], "+insn,-tid");
	assert_string_equal(run.arg.input, "-");
}

static void a_flag_is_taken_back_by_no(void **state)
{
	struct run run = { .arg.pager = true };

	parse(&run, "--no-pager", false);
	assert_int_equal(run.result, 0);
	assert_false(run.arg.pager);
	parse(&run, "--no-pager --pag", false);
	assert_true(run.arg.pager);
	assert_refused("--no-ns", "unknown option: --no-ns; see 'ptvm try --help'");
}

static void what_is_no_option_is_refused(void **state)
{
	assert_refused("-n a b",
		       "unexpected argument: a; name a file with -i, or see 'ptvm try --help'");
	assert_refused("-",
		       "unexpected argument: -; name a file with -i, or see 'ptvm try --help'");
	assert_refused("-n -- --ns",
		       "unexpected argument: --ns; name a file with -i, or see 'ptvm try --help'");
}

static void options_end_where_a_command_begins(void **state)
{
	const char *const lines[] = { "-q ls --ns", "-q -- ls --ns" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct run run = { 0 };

		parse(&run, lines[i], true);
		assert_int_equal(run.result, 2);
		assert_true(run.arg.quiet);
		assert_false(run.arg.ns);
	}
}

static void each_mistake_has_its_sentence(void **state)
{
	assert_refused("--wrong=1", "unknown option: --wrong; see 'ptvm try --help'");
	assert_refused("--isns-trace=x",
		       "unknown option: --isns-trace, did you mean --insn-trace?");
	assert_refused("--secrte", "unknown option: --secrte; see 'ptvm try --help'");
	assert_refused("-nx", "unknown option: -x; see 'ptvm try --help'");
	assert_refused("--in", "ambiguous option: --in (--input or --insn-trace)");
	assert_refused("--ns=1", "option takes no argument: --ns");
	assert_refused("--no-pager=1", "option takes no argument: --no-pager");
	assert_refused("-C", "option needs an argument: -C");
	assert_refused("--cpu", "option needs an argument: --cpu");
	assert_refused("--input=", "option needs an argument: --input");
	assert_refused("--cpu=", "--cpu takes a number, not ''");
	assert_refused("-C 1x", "-C takes a number, not '1x'");
	assert_refused("-C -1", "-C takes a number, not '-1'");
	assert_refused("-C 0x0x1", "-C takes a number, not '0x0x1'");
	assert_refused("-C 0x", "-C takes a number, not '0x'");
	assert_refused("-C 18446744073709551616", "-C takes a number, not '18446744073709551616'");
	assert_refused("-F bad", "-F takes LIST, not 'bad'");
	assert_refused("-F worse", "no field is called worse");
}

static void what_is_known_elsewhere_is_refused_with_the_reason(void **state)
{
	assert_refused("-S x", "-S is not here: use --ns");
	assert_refused("-nS", "-S is not here: use --ns");
	assert_refused("--inline=x", "--inline is not here: use --ns");
	assert_refused("--inlin", "--inlin is not here: use --ns");
	assert_refused("--inlines", "unknown option: --inlines; see 'ptvm try --help'");
	assert_refused("--f=x", "ambiguous option: --f (--fields or --fuzzy)");
	assert_refused("--in", "ambiguous option: --in (--input or --insn-trace)");
}

static void help_may_be_shortened(void **state)
{
	struct run run = { 0 };

	parse(&run, "--hel", false);
	assert_int_equal(run.result, -PTVM_END);
	assert_memory_equal(run.output, "Usage: ", 7);
	assert_refused("--helper", "unknown option: --helper; see 'ptvm try --help'");
}

static void help_lists_what_is_not_hidden(void **state)
{
	struct run run = { 0 };

	parse(&run, "--ns --help --wrong", false);
	assert_int_equal(run.result, -PTVM_END);
	assert_string_equal(run.output, "Usage: ptvm try [OPTION]...\n"
					"Tries.\n"
					"\n"
					"What:\n"
					"  -i, --input=FILE            recording to read\n"
					"      --insn-trace[=raw]      print instructions\n"
					"  -C, --cpu=N                 only this CPU\n"
					"  -F, --fields=LIST           fields to print\n"
					"      --[no-]pager            use a pager\n"
					"  -n, --ns                    print nanoseconds\n"
					"  -q                          say less\n"
					"  -h, --help                  print this help\n");
}

static void completion_gets_every_word(void **state)
{
	struct run run = { 0 };

	parse(&run, "--complete", false);
	assert_int_equal(run.result, -PTVM_END);
	assert_string_equal(run.output, "--input=\tFILE\t-i\t\n--insn-trace\traw\t\t\n"
					"--cpu=\tN\t-C\t\n--fields=\tLIST\t-F\tip sym\n"
					"--pager\t\t\t\n--no-pager\t\t\t\n--ns\t\t-n\t\n"
					"--help\t\t-h\t\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_joined_or_follow),
		cmocka_unit_test(letters_without_argument_may_be_joined),
		cmocka_unit_test(an_optional_argument_must_be_joined),
		cmocka_unit_test(an_argument_may_begin_with_a_dash),
		cmocka_unit_test(a_flag_is_taken_back_by_no),
		cmocka_unit_test(what_is_no_option_is_refused),
		cmocka_unit_test(options_end_where_a_command_begins),
		cmocka_unit_test(each_mistake_has_its_sentence),
		cmocka_unit_test(what_is_known_elsewhere_is_refused_with_the_reason),
		cmocka_unit_test(help_may_be_shortened),
		cmocka_unit_test(help_lists_what_is_not_hidden),
		cmocka_unit_test(completion_gets_every_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
