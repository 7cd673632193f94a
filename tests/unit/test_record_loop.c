#include "host/record/record_loop.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/record/pause_watch.h"
#include "host/record/record_options.h"
#include "host/record/recorder.h"
#include "tests/command_line.h"
#include "tests/fake_machine.h"
#include "tests/said.h"

struct bench {
	struct fake_tree tree;
	struct fake_machine machine;
	struct record_options options;
	struct recorder recorder;
	struct record_loop loop;
	struct trace_loss loss;
	struct ptvm_error error;
	char output[100], control[100], ack[100], fifos[220];
	int commands, answers; /* ends of the FIFOs that a user has */
	sigset_t mask;
};

static struct bench bench;

static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &bench.mask), 0);
	fake_tree_init(&bench.tree);
	assert_int_equal(fake_machine_init(&bench.machine, NULL, NULL), 0);
	fake_past_tree(&bench.machine.past, &bench.tree);
	(void)snprintf(bench.output, sizeof(bench.output), "%s/rec", bench.tree.path);
	(void)snprintf(bench.control, sizeof(bench.control), "%s/control", bench.tree.path);
	(void)snprintf(bench.ack, sizeof(bench.ack), "%s/ack", bench.tree.path);
	(void)snprintf(bench.fifos, sizeof(bench.fifos), "fifo:%s,%s", bench.control, bench.ack);
	assert_int_equal(mkfifo(bench.control, 0600), 0);
	assert_int_equal(mkfifo(bench.ack, 0600), 0);
	bench.commands = open(bench.control, O_RDWR | O_NONBLOCK);
	bench.answers = open(bench.ack, O_RDWR | O_NONBLOCK);
	return 0;
}

/* Opens all by a command line, which ends with NULL. */
static void begin(const char *const *words)
{
	static struct command_line line;

	command_line_make(&line, words);
	assert_int_equal(record_options_parse(line.argc, line.argv, &bench.options, NULL), 0);
	bench.options.output = bench.output;
	bench.loop = (struct record_loop){ .recorder = &bench.recorder,
					   .options = &bench.options,
					   .signals = record_loop_signals(NULL),
					   .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
					   .control = control_fifo_none() };
	assert_int_equal(control_fifo_open(bench.fifos, &bench.loop.control, NULL), 0);
	if (bench.options.command)
		assert_int_equal(
			workload_prepare(&bench.loop.workload, bench.options.command, NULL), 0);
	bench.recorder = (struct recorder){ .roots = &bench.tree.roots,
					    .kernel = &bench.machine.table,
					    .options = &bench.options,
					    .wake_fd = bench.loop.wake };
	assert_int_equal(record_targets_find(&bench.tree.roots, &bench.options,
					     &bench.recorder.targets, NULL),
			 0);
	assert_int_equal(recorder_open(&bench.recorder, &bench.error), 0);
}

#define BEGIN(...) begin((const char *const[]){ "record", "-m", "64K,32K", __VA_ARGS__, NULL })

static int tear_down(void **state)
{
	const struct timespec now = { 0 };
	sigset_t all;

	(void)recorder_finish(&bench.recorder, &bench.loss, NULL);
	trace_loss_free(&bench.loss);
	recorder_free(&bench.recorder);
	workload_end(&bench.loop.workload);
	control_fifo_close(&bench.loop.control);
	(void)close(bench.loop.signals);
	(void)close(bench.loop.wake);
	(void)close(bench.commands);
	(void)close(bench.answers);
	record_options_free(&bench.options);
	(void)sigfillset(&all);
	while (sigtimedwait(&all, NULL, &now) > 0)
		;
	(void)sigprocmask(SIG_SETMASK, &bench.mask, NULL);
	fake_machine_deinit(&bench.machine);
	fake_tree_deinit(&bench.tree);
	return 0;
}

static void command(const char *text)
{
	assert_int_equal(write(bench.commands, text, strlen(text)), strlen(text));
}

static void assert_answers(size_t count)
{
	char text[64];

	assert_int_equal(read(bench.answers, text, sizeof(text)), 4 * count);
	assert_memory_equal(text, "ack\nack\nack\nack\n", 4 * count);
}

static int run(void)
{
	return record_loop_run(&bench.loop, &bench.error);
}

/* Run until it looked around once. Returns what was said. */
static const char *look_once(void)
{
	static struct said said;

	command("stop\n");
	said_begin(&said);
	assert_int_equal(run(), 0);
	return said_end(&said);
}

static void a_signal_ends_it(void **state)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

	(void)signal(SIGHUP, SIG_DFL); /* nohup ignores it */
	BEGIN("-t", "113");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		bench.loop.is_over = false;
		assert_int_equal(kill(getpid(), numbers[i]), 0);
		assert_int_equal(run(), 0);
		assert_true(bench.loop.is_over);
	}
	assert_true(bench.recorder.is_written);
}

static void commands_are_carried_out_and_answered(void **state)
{
	BEGIN("-t", "113", "-D", "-1", "--control", "fd:0");
	command("ping\nnonsense\nenable\ndisable\nstop\n");
	assert_int_equal(run(), 0);
	assert_answers(4);
	assert_true(bench.recorder.is_written);
	assert_false(bench.recorder.tracer.is_on);
}

static void time_counts_from_when_it_is_enabled(void **state)
{
	BEGIN("-t", "113", "-D", "-1", "--control", "fd:0", "--duration", "1ms");
	command("enable\n");
	assert_int_equal(run(), 0);
	assert_true(bench.loop.is_over && bench.loop.begun_ms);
}

static void nothing_is_traced_before_it_is_enabled(void **state)
{
	BEGIN("-t", "113", "-D", "-1", "--control", "fd:0");
	command("ping\nstop\n");
	assert_int_equal(run(), 0);
	assert_false(bench.recorder.is_written);
	assert_false(bench.recorder.tracer.is_on);
}

static void snapshots_come_by_signal_and_by_command(void **state)
{
	BEGIN("-t", "113", "-S");
	assert_int_equal(kill(getpid(), SIGUSR2), 0);
	command("snapshot\nstop\n");
	assert_int_equal(run(), 0);
	assert_int_equal(bench.recorder.snapshots, 2);
	assert_answers(2);
}

static void a_full_trace_takes_no_snapshots(void **state)
{
	BEGIN("-t", "113");
	assert_int_equal(kill(getpid(), SIGUSR2), 0);
	command("stop\n");
	assert_int_equal(run(), 0);
	assert_int_equal(bench.recorder.snapshots, 0);
}

static void it_lasts_as_long_as_the_command(void **state)
{
	BEGIN("-t", "113", "--", "sh", "-c", "exit 5");
	assert_int_equal(run(), 0);
	assert_int_equal(bench.loop.exit_status, 5);
}

static void a_command_that_is_not_there_ends_it(void **state)
{
	BEGIN("-t", "113", "--", "no-such-command-anywhere");
	assert_int_equal(run(), -PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message,
			    "no-such-command-anywhere: No such file or directory");
}

static void it_lasts_as_long_as_was_said(void **state)
{
	BEGIN("-t", "113", "--duration", "1ms");
	assert_int_equal(run(), 0);
	assert_true(bench.loop.begun_ms > 0);
}

static void it_ends_with_the_threads(void **state)
{
	BEGIN("-t", "999");
	assert_int_equal(run(), 0);
	assert_true(bench.loop.is_over);
}

static void it_ends_when_nothing_drains_any_more(void **state)
{
	BEGIN("-t", "113", "--max-size", "1K");
	assert_int_equal(run(), 0);
	assert_true(bench.loop.is_over);
}

/* As if the limit had been reached while a vCPU was added. Commands are not even looked at then. */
static void it_ends_when_the_recording_is_full(void **state)
{
	BEGIN("-t", "113");
	command("stop\n");
	bench.recorder.is_full = true;
	assert_int_equal(run(), 0);
	assert_int_equal(control_fifo_next(&bench.loop.control), CONTROL_STOP);
}

static void a_vcpu_that_is_taken_away_is_told_of(void **state)
{
	fake_tree_thread(&bench.tree, 106, 114, "CPU 1/KVM");
	BEGIN("-p", "106");
	fake_tree_thread_ends(&bench.tree, 106, 114);
	assert_string_equal(look_once(),
			    "ptvm record: vCPU 1 of small is gone; the others go on\n");
	bench.loop.is_over = false;
	bench.loop.look_ms = 0;
	assert_string_equal(look_once(), "");
}

static void a_cpu_that_comes_online_is_told_of(void **state)
{
	BEGIN("-t", "113");
	fake_tree_file(&bench.tree, "0-2\n", "sys/devices/system/cpu/online");
	assert_string_equal(look_once(), "ptvm record: CPU 2 came online, and what runs on it is "
					 "not traced\n");
}

/* What is said after CPU 1 was offline. */
static const char *after_offline(void)
{
	fake_tree_file(&bench.tree, "0\n", "sys/devices/system/cpu/online");
	assert_string_equal(look_once(), "");
	bench.loop.look_ms = 0;
	fake_tree_file(&bench.tree, "0-1\n", "sys/devices/system/cpu/online");
	return look_once();
}

static void one_that_was_offline_is_told_of(void **state)
{
	BEGIN("-t", "113");
	assert_string_equal(after_offline(), "ptvm record: CPU 1 was offline, and which thread "
					     "runs on it is not recorded any more\n");
}

static void so_is_one_of_which_all_was_traced(void **state)
{
	BEGIN("-a");
	assert_string_equal(after_offline(), "ptvm record: CPU 1 was offline, and what runs on it "
					     "is not traced any more\n");
}

static void the_ring_of_a_thread_is_of_all_cpus(void **state)
{
	BEGIN("-t", "113", "--per-thread");
	fake_tree_file(&bench.tree, "0-2\n", "sys/devices/system/cpu/online");
	assert_string_equal(look_once(), "");
	bench.loop.look_ms = 0;
	assert_string_equal(after_offline(), "");
}

/* As if a thread had asked libvirt. */
static void a_pause_is_told_of_when_it_is_over(void **state)
{
	struct pause pause = { "vm", "paused", 1500 };
	struct pause_watch pauses = { .lock = PTHREAD_MUTEX_INITIALIZER,
				      .pauses = { &pause, 1, 1 } };

	BEGIN("-t", "113");
	bench.loop.pauses = &pauses;
	assert_string_equal(look_once(), "ptvm record: domain 'vm' was paused for 1.5 s, and there "
					 "is no trace of it then\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_signal_ends_it),
		TEST(commands_are_carried_out_and_answered),
		TEST(time_counts_from_when_it_is_enabled),
		TEST(nothing_is_traced_before_it_is_enabled),
		TEST(snapshots_come_by_signal_and_by_command),
		TEST(a_full_trace_takes_no_snapshots),
		TEST(it_lasts_as_long_as_the_command),
		TEST(a_command_that_is_not_there_ends_it),
		TEST(it_lasts_as_long_as_was_said),
		TEST(it_ends_with_the_threads),
		TEST(it_ends_when_nothing_drains_any_more),
		TEST(it_ends_when_the_recording_is_full),
		TEST(a_vcpu_that_is_taken_away_is_told_of),
		TEST(a_cpu_that_comes_online_is_told_of),
		TEST(one_that_was_offline_is_told_of),
		TEST(so_is_one_of_which_all_was_traced),
		TEST(the_ring_of_a_thread_is_of_all_cpus),
		TEST(a_pause_is_told_of_when_it_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
