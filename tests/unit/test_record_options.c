#include "host/record/record_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_WORDS = 32, WORD_SIZE = 128 };

struct bench {
	struct record_options options;
	struct ptvm_error error;
	char words[MAX_WORDS][WORD_SIZE];
	char *argv[MAX_WORDS];
};

static struct bench bench;

static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	return 0;
}

static int tear_down(void **state)
{
	record_options_free(&bench.options);
	return 0;
}

/* What separates words is a space. */
static int parse(const char *line)
{
	int argc = 0;

	record_options_free(&bench.options);
	bench.error = (struct ptvm_error){ 0 };
	(void)strcpy(bench.words[argc++], "record");
	for (size_t length; *line; line += length) {
		line += strspn(line, " ");
		length = strcspn(line, " ");
		(void)snprintf(bench.words[argc++], WORD_SIZE, "%.*s", (int)length, line);
	}
	for (int i = 0; i < argc; i++)
		bench.argv[i] = bench.words[i];
	return record_options_parse(argc, bench.argv, &bench.options, &bench.error);
}

static void assert_refused(const char *line, const char *expected)
{
	assert_int_equal(parse(line), -PTVM_BAD_USAGE);
	assert_string_equal(bench.error.message, expected);
}

static void guests_threads_and_cpus_are_named(void **state)
{
	const struct record_options *o = &bench.options;

	assert_int_equal(parse("--domain a --domain b -c qemu:///x -p 1,22 -p 3 --vcpu 0,2-3 -t 4 "
			       "-C 1"),
			 0);
	assert_int_equal(o->domains.count, 2);
	assert_string_equal(o->domains.items[1], "b");
	assert_string_equal(o->uri, "qemu:///x");
	assert_int_equal(o->pids.count, 3);
	assert_int_equal(o->pids.items[1], 22);
	assert_int_equal(o->pids.items[2], 3);
	assert_true(number_ranges_has(&o->vcpus, 3));
	assert_false(number_ranges_has(&o->vcpus, 1));
	assert_int_equal(o->tids.items[0], 4);
	assert_true(o->has_cpus);
	assert_false(o->is_all_cpus);
	assert_string_equal(o->output, "ptvm.data");
	assert_null(o->command);
}

static void options_of_perf_that_are_not_here_say_why(void **state)
{
	assert_refused("-p 1 --kcore", "--kcore is not here: kernels are always copied");
	assert_refused("--guestkallsyms=x -p 1", "--guestkallsyms is not here: --via says how the "
						 "guest's kernel is copied");
}

static void something_must_be_named(void **state)
{
	static const char nothing[] = "what to trace? name a guest with --domain or -p, threads "
				      "with -t, or CPUs with -C or -a";

	assert_refused("", nothing);
	assert_refused("-- true", nothing);
	assert_int_equal(parse("-a"), 0);
	assert_int_equal(parse("--repair x"), 0);
	assert_string_equal(bench.options.repair, "x");
	assert_refused("--repair x -a", "--repair records nothing: leave what to trace out");
	assert_refused("--repair x -- true", "--repair records nothing: leave what to trace out");
}

static void what_does_not_go_together_is_told(void **state)
{
	assert_refused("-a --per-thread",
		       "--per-thread follows threads to any CPU: leave -C and -a out");
	assert_refused("-t 1 -C 0 --per-thread",
		       "--per-thread follows threads to any CPU: leave -C and -a out");
	assert_refused("-t 1 --vcpu 0", "--vcpu needs the guest, by --domain or -p");
	assert_refused("-t 1 -D -1", "-D -1 waits to be enabled by --control, which is not given");
	assert_int_equal(parse("-t 1 -D -1 --control fifo:x"), 0);
	assert_int_equal(bench.options.delay_ms, -1);
}

static void numbers_of_processes_and_threads_are_positive(void **state)
{
	static const char *const wrong[] = { "0",  "-1", "x",    "1x",
					     ",1", "1,", "1,,2", "99999999999999999999" };
	char line[64];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)snprintf(line, sizeof(line), "--pid=%s", wrong[i]);
		assert_int_equal(parse(line), -PTVM_BAD_USAGE);
		(void)snprintf(line, sizeof(line), "--tid=%s", wrong[i]);
		assert_int_equal(parse(line), -PTVM_BAD_USAGE);
	}
	assert_refused("--pid=x", "-p takes the numbers of processes, not 'x'");
	assert_refused("--tid=x", "-t takes the numbers of threads, not 'x'");
}

static void buffers_are_counted_in_pages_or_units(void **state)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const struct record_options *o = &bench.options;

	assert_int_equal(parse("-a -m 4"), 0);
	assert_int_equal(o->record_size, 4 * page);
	assert_int_equal(o->aux_size, 0);
	assert_int_equal(parse("-a -m ,64M"), 0);
	assert_int_equal(o->record_size, 0);
	assert_int_equal(o->aux_size, 64 << 20);
	assert_int_equal(parse("-a -m 1k,16B"), 0);
	assert_int_equal(o->record_size, 1024);
	assert_int_equal(o->aux_size, 16);
	assert_refused("-a -m 0", "-m takes sizes, as 512K,16M, not '0'");
	assert_refused("-a -m 1,", "-m takes sizes, as 512K,16M, not '1,'");
	assert_refused("-a -m ,", "-m takes sizes, as 512K,16M, not ','");
	assert_refused("-a -m 1Q", "-m takes sizes, as 512K,16M, not '1Q'");
	assert_refused("-a -m 1,2,3", "-m takes sizes, as 512K,16M, not '1,2,3'");
	assert_refused("-a -m 99999999999G", "-m takes sizes, as 512K,16M, not '99999999999G'");
}

static void snapshots_have_a_size_and_an_end(void **state)
{
	const struct record_options *o = &bench.options;

	assert_int_equal(parse("-a -S"), 0);
	assert_true(o->is_snapshot && !o->is_at_exit);
	assert_int_equal(o->snapshot_size, 0);
	assert_int_equal(parse("-a -Se"), 0);
	assert_true(o->is_snapshot && o->is_at_exit);
	assert_int_equal(parse("-a -S64Ke"), 0);
	assert_true(o->is_at_exit);
	assert_int_equal(o->snapshot_size, 65536);
	assert_int_equal(parse("-a --snapshot=100"), 0);
	assert_int_equal(o->snapshot_size, 100);
	assert_refused("-a -Sx", "-S takes a size and e, not 'x'");
	assert_refused("-a -S0", "-S takes a size and e, not '0'");
	assert_refused("-a -See", "-S takes a size and e, not 'ee'");
}

static void times_are_read_with_their_units(void **state)
{
	const struct record_options *o = &bench.options;

	assert_int_equal(parse("-a --duration 2.5 -D 100"), 0);
	assert_int_equal(o->duration_ms, 2500);
	assert_int_equal(o->delay_ms, 100);
	assert_int_equal(parse("-a --duration 500ms"), 0);
	assert_int_equal(o->duration_ms, 500);
	assert_int_equal(parse("-a --duration 3s"), 0);
	assert_int_equal(o->duration_ms, 3000);
	assert_int_equal(parse("-a --duration 0.0001"), 0);
	assert_int_equal(o->duration_ms, 1);
	assert_refused("-a --duration 0", "--duration takes seconds, as 2.5, not '0'");
	assert_refused("-a --duration -1", "--duration takes seconds, as 2.5, not '-1'");
	assert_refused("-a --duration nan", "--duration takes seconds, as 2.5, not 'nan'");
	assert_refused("-a --duration 1h", "--duration takes seconds, as 2.5, or 500ms, not '1h'");
	assert_refused("-a -D x", "-D takes milliseconds, or -1, not 'x'");
	assert_refused("-a -D -2", "-D takes milliseconds, or -1, not '-2'");
	assert_refused("-a -D 1s", "-D takes milliseconds, or -1, not '1s'");
}

static void the_size_of_a_recording_can_be_limited(void **state)
{
	assert_int_equal(parse("-a --max-size 2G"), 0);
	assert_int_equal(bench.options.max_size, (uint64_t)2 << 30);
	assert_refused("-a --max-size 2Gx", "--max-size takes a size, as 2G, not '2Gx'");
	assert_refused("-a --max-size x", "--max-size takes a size, as 2G, not 'x'");
}

static void the_rest_is_kept_as_it_is(void **state)
{
	const struct record_options *o = &bench.options;

	assert_int_equal(
		parse("--domain d -e intel_pt//k --filter x --via agent -o out --kvm-events "
		      "--per-thread --control fd:3"),
		0);
	assert_string_equal(o->event, "intel_pt//k");
	assert_string_equal(o->filter, "x");
	assert_string_equal(o->via, "agent");
	assert_string_equal(o->output, "out");
	assert_string_equal(o->control, "fd:3");
	assert_true(o->has_kvm_events && o->is_per_thread);
}

static void a_way_leads_to_one_guest(void **state)
{
	assert_refused("-p 1,2 --via mount=/x",
		       "--via mount=/x leads to one guest, and 2 are named");
	assert_refused("-t 1 --via agent", "--via leads to a guest: name it with --domain or -p");
	assert_int_equal(parse("-p 1 --via mount=/x"), 0);
	assert_int_equal(parse("-t 1 --via none"), 0);
}

static void a_command_begins_where_options_end(void **state)
{
	char **command;

	assert_int_equal(parse("-a -- ls -l -a"), 0);
	command = bench.options.command;
	assert_non_null(command);
	assert_string_equal(command[0], "ls");
	assert_string_equal(command[1], "-l");
	assert_string_equal(command[2], "-a");
	assert_null(command[3]);
	assert_int_equal(parse("-a sleep 1"), 0);
	assert_string_equal(bench.options.command[0], "sleep");
}

static void what_is_no_option_is_told(void **state)
{
	assert_int_equal(parse("-a --nothing"), -PTVM_BAD_USAGE);
	assert_int_equal(parse("-a -o"), -PTVM_BAD_USAGE);
	assert_int_equal(parse("-C x"), -PTVM_BAD_USAGE);
	assert_int_equal(parse("-p 1 --vcpu 3-1"), -PTVM_BAD_USAGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(guests_threads_and_cpus_are_named),
		TEST(options_of_perf_that_are_not_here_say_why),
		TEST(something_must_be_named),
		TEST(what_does_not_go_together_is_told),
		TEST(numbers_of_processes_and_threads_are_positive),
		TEST(buffers_are_counted_in_pages_or_units),
		TEST(snapshots_have_a_size_and_an_end),
		TEST(times_are_read_with_their_units),
		TEST(the_size_of_a_recording_can_be_limited),
		TEST(the_rest_is_kept_as_it_is),
		TEST(a_way_leads_to_one_guest),
		TEST(a_command_begins_where_options_end),
		TEST(what_is_no_option_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
