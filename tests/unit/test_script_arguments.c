/* script_arguments: what the options of `ptvm script` leave in its arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/script.h"

enum { MOST_WORDS = 80 };

static char line_copy[2000];
static char *words[MOST_WORDS + 1];

static int split(const char *line)
{
	int count = 0;

	assert_true(strlen(line) < sizeof(line_copy));
	strcpy(line_copy, line);
	for (char *word = strtok(line_copy, " "); word; word = strtok(NULL, " ")) {
		assert_true(count < MOST_WORDS);
		words[count++] = word;
	}
	words[count] = NULL;
	return count;
}

/* The returned words are valid until the next call. */
static struct script_args parse(const char *line)
{
	struct script_args args = { 0 };
	struct ptvm_error error = { 0 };

	if (script_parse(&args, split(line), words, &error))
		fail_msg("%s: %s", line, error.message);
	return args;
}

static void refuse(const char *line, const char *message)
{
	struct script_args args = { 0 };
	struct ptvm_error error = { 0 };

	assert_int_equal(script_parse(&args, split(line), words, &error), -PTVM_BAD_USAGE);
	assert_string_equal(error.message, message);
}

static void texts_are_kept_for_later(void **state)
{
	struct script_args args = parse("script -i in --time 1,2 -C 0-1 --tid 5 --pid 6 -c name "
					"--vcpu 3 --vmcs 0x1 --pt trace");

	assert_string_equal(args.input, "in");
	assert_string_equal(args.times, "1,2");
	assert_string_equal(args.cpus, "0-1");
	assert_string_equal(args.tids, "5");
	assert_string_equal(args.pids, "6");
	assert_string_equal(args.comms, "name");
	assert_string_equal(args.vcpus, "3");
	assert_string_equal(args.vmcs, "0x1");
	assert_string_equal(args.pt, "trace");
	args = parse("script");
	assert_null(args.input);
	assert_int_equal(args.step_count, 0);
}

static void numbers_are_read(void **state)
{
	struct script_args args = parse("script -j 3 --max-lines=10 --mtc-freq 9 --nom-freq 24 "
					"--cpuid-0x15.eax 2 --cpuid-0x15.ebx 0x10");

	assert_int_equal(args.jobs, 3);
	assert_int_equal(args.max_lines, 10);
	assert_int_equal(args.mtc_freq, 9);
	assert_int_equal(args.nom_freq, 24);
	assert_int_equal(args.cpuid_eax, 2);
	assert_int_equal(args.cpuid_ebx, 16);
	refuse("script --max-lines=ten", "--max-lines takes a number, not 'ten'");
}

static void assert_step(const struct script_args *args, unsigned at, unsigned kind,
			const char *text)
{
	assert_int_equal(args->steps[at].kind, kind);
	if (text)
		assert_string_equal(args->steps[at].text, text);
	else
		assert_null(args->steps[at].text);
}

static void what_to_print_is_kept_in_its_order(void **state)
{
	struct script_args args = parse("script -F +vmcs --insn-trace --itrace --call-trace "
					"--itrace=be --call-ret-trace --insn-trace=raw -F ip");

	assert_int_equal(args.step_count, 8);
	assert_step(&args, 0, STEP_FIELDS, "+vmcs");
	assert_step(&args, 1, STEP_INSN_TRACE, "disasm");
	assert_step(&args, 2, STEP_ITRACE, "");
	assert_step(&args, 3, STEP_CALL_TRACE, NULL);
	assert_step(&args, 4, STEP_ITRACE, "be");
	assert_step(&args, 5, STEP_CALL_RET_TRACE, NULL);
	assert_step(&args, 6, STEP_INSN_TRACE, "raw");
	assert_step(&args, 7, STEP_FIELDS, "ip");
}

static void disassembly_goes_by_the_name_of_xed_too(void **state)
{
	struct script_args args = parse("script --insn-trace --xed");

	assert_int_equal(args.step_count, 2);
	assert_step(&args, 1, STEP_FIELDS, "-insn,+disasm");
}

static void files_of_code_are_kept_in_their_order(void **state)
{
	struct script_args args = parse("script --pt p --elf a --raw b:0x1000 --elf c:7");

	assert_int_equal(args.code_file_count, 3);
	assert_string_equal(args.code_files[0].text, "a");
	assert_string_equal(args.code_files[1].text, "b:0x1000");
	assert_string_equal(args.code_files[2].text, "c:7");
	assert_false(args.code_files[0].raw || args.code_files[2].raw);
	assert_true(args.code_files[1].raw);
}

static void mistakes_are_told_where_they_are(void **state)
{
	refuse("script --insn-trace=all", "--insn-trace takes raw, not 'all'");
	refuse("script --itrace=k",
	       "--itrace at 'k': the letters are i b c r e p w x I s g l G L q A Z");
	refuse("script -F nosuch",
	       "-F: no field is called 'nosuch': there are comm tid pid cpu time event period ip "
	       "sym symoff dso addr flags insn insnlen ipc machine_pid vcpu synth vmcs nr "
	       "callindent disasm trace brstack");
	refuse("script recording",
	       "unexpected argument: recording; name a file with -i, or see 'ptvm "
	       "script --help'");
}

/* Gives an option as often as is allowed, and once more. */
static void repeat(const char *option, unsigned most, const char *message)
{
	struct script_args args = { 0 };
	struct ptvm_error error = { 0 };
	char *many[2 + CODE_FILES_MAX + 1] = { (char *)(uintptr_t) "script" };
	unsigned count;

	for (count = 1; count <= most; count++)
		many[count] = (char *)(uintptr_t)option;
	assert_int_equal(script_parse(&args, (int)count, many, &error), 0);
	args = (struct script_args){ 0 };
	many[0] = (char *)(uintptr_t) "script";
	for (count = 1; count <= most + 1; count++)
		many[count] = (char *)(uintptr_t)option;
	assert_int_equal(script_parse(&args, (int)count, many, &error), -PTVM_BAD_USAGE);
	assert_string_equal(error.message, message);
}

static void there_are_only_so_many(void **state)
{
	repeat("-Fip", SCRIPT_STEPS_MAX, "more than 32 options of what to print");
	repeat("--elf=a", CODE_FILES_MAX, "more than 64 files of code");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_kept_for_later),
		cmocka_unit_test(numbers_are_read),
		cmocka_unit_test(what_to_print_is_kept_in_its_order),
		cmocka_unit_test(disassembly_goes_by_the_name_of_xed_too),
		cmocka_unit_test(files_of_code_are_kept_in_their_order),
		cmocka_unit_test(mistakes_are_told_where_they_are),
		cmocka_unit_test(there_are_only_so_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
