#include "host/record/record.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "host/record/record_options.h"
#include "host/record/recording_repair.h"
#include "tests/command_line.h"
#include "tests/fake_domain.h"
#include "tests/fake_machine.h"
#include "tests/open_files.h"
#include "tests/said.h"

static struct bench {
	struct fake_tree tree;
	struct fake_machine machine;
	struct record_options options;
	struct ptvm_error error;
	struct said said;
	sigset_t mask;
	size_t files; /* open before */
	char output[100], data[120];
} bench;

static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &bench.mask), 0);
	fake_tree_init(&bench.tree);
	assert_int_equal(fake_machine_init(&bench.machine, NULL, NULL), 0);
	fake_past_tree(&bench.machine.past, &bench.tree);
	(void)snprintf(bench.output, sizeof(bench.output), "%s/rec", bench.tree.path);
	(void)snprintf(bench.data, sizeof(bench.data), "%s/data", bench.output);
	bench.machine.step = 20;
	bench.files = open_files();
	return 0;
}

/* Nothing stays open, however it went. */
static int tear_down(void **state)
{
	const struct timespec now = { 0 };
	sigset_t all;

	assert_int_equal(open_files(), bench.files);
	assert_int_equal(fake_machine_open_count(&bench.machine), 0);
	assert_int_equal(bench.machine.mapped, 0);
	(void)sigfillset(&all);
	while (sigtimedwait(&all, NULL, &now) > 0)
		;
	(void)signal(SIGPIPE, SIG_DFL);
	record_options_free(&bench.options);
	fake_machine_deinit(&bench.machine);
	fake_tree_deinit(&bench.tree);
	return sigprocmask(SIG_SETMASK, &bench.mask, NULL);
}

/* By a command line, which ends with NULL. */
static int record_by(const char *const *words)
{
	static struct command_line line;
	int r;

	command_line_make(&line, words);
	assert_int_equal(record_options_parse(line.argc, line.argv, &bench.options, NULL), 0);
	bench.options.output = bench.output;
	said_begin(&bench.said);
	r = record(&bench.tree.roots, &bench.machine.table, &bench.options, line.argc, line.argv,
		   &bench.error);
	(void)said_end(&bench.said);
	return r;
}

#define RECORD(...)                                                                                \
	record_by((const char *const[]){ "record", "-m", "64K,64K", "--via", "none", __VA_ARGS__,  \
					 NULL })

static void assert_is_kept(void)
{
	assert_int_equal(recording_repair(bench.data, NULL), 0);
}

static void assert_nothing_is_left(void)
{
	assert_int_equal(access(bench.output, F_OK), -1);
}

static void assert_signals_end_us_again(void)
{
	sigset_t held;

	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &held), 0);
	assert_false(sigismember(&held, SIGINT));
	assert_true(sigismember(&held, SIGUSR2));
}

static void a_signal_ends_a_recording_well(void **state)
{
	bench.machine.signal = SIGINT;
	assert_int_equal(RECORD("-p", "106"), 0);
	assert_is_kept();
	assert_non_null(strstr(bench.said.text, bench.output));
}

static void the_status_of_the_command_is_that_of_the_recording(void **state)
{
	assert_int_equal(RECORD("-p", "106", "--", "sh", "-c", "exit 7"), 7);
	assert_is_kept();
	bench.error = (struct ptvm_error){ 0 };
	record_options_free(&bench.options);
	assert_int_equal(RECORD("-p", "106", "--", "true"), 0);
}

static void one_that_was_never_switched_on_says_so(void **state)
{
	assert_int_equal(RECORD("-p", "106", "-D", "60000", "--", "true"), 0);
	assert_non_null(strstr(bench.said.text, "ptvm record: nothing was recorded: it ended "
						"before the trace was switched on\n"));
	assert_nothing_is_left();
}

static void a_fifo_is_listened_to_meanwhile(void **state)
{
	char fifo[120], option[140];

	(void)snprintf(fifo, sizeof(fifo), "%s/control", bench.tree.path);
	(void)snprintf(option, sizeof(option), "fifo:%s", fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(RECORD("-p", "106", "--control", option, "--", "true"), 0);
	assert_is_kept();
}

static void a_recording_that_is_full_is_a_good_one(void **state)
{
	assert_int_equal(RECORD("-t", "113", "--max-size", "20K"), 0);
	assert_is_kept();
	assert_string_equal(bench.error.message, "");
}

static void a_guest_that_is_not_there_leaves_nothing(void **state)
{
	assert_int_equal(RECORD("-p", "4711"), -PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message, "there is no process 4711");
	assert_nothing_is_left();
	assert_string_equal(bench.said.text, "");
}

static void a_command_that_is_not_there_leaves_nothing(void **state)
{
	assert_true(RECORD("-p", "106", "--", "/nonexistent/command") < 0);
	assert_non_null(strstr(bench.error.message, "/nonexistent/command"));
	assert_nothing_is_left();
}

static void assert_has(const char *name, bool expected)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s%s", bench.output, name);
	assert_int_equal(access(path, F_OK), expected ? 0 : -1);
}

/* Even if the last thing fails that can. */
static void recordings_before_one_that_fails_stay(void **state)
{
	fake_tree_file(&bench.tree, "1", "rec.old/data.1");
	fake_tree_file(&bench.tree, "2", "rec/data.2");
	assert_true(RECORD("-p", "106", "--", "/nonexistent/command") < 0);
	assert_has("/data.2", true);
	assert_has(".old/data.1", true);
	record_options_free(&bench.options);
	bench.error = (struct ptvm_error){ 0 };
	assert_int_equal(RECORD("-p", "106", "--", "true"), 0);
	assert_has("/data", true);
	assert_has(".old/data.2", true);
	assert_has(".old/data.1", false);
}

static void a_fifo_that_is_not_there_leaves_nothing(void **state)
{
	assert_true(RECORD("-p", "106", "--control", "fifo:/nonexistent/fifo") < 0);
	assert_non_null(strstr(bench.error.message, "/nonexistent/fifo"));
	assert_nothing_is_left();
}

static void a_kernel_that_refuses_leaves_nothing(void **state)
{
	bench.machine.fail_at = 20;
	bench.machine.fail_errno = EPERM;
	assert_int_equal(RECORD("-p", "106"), -PTVM_SYSTEM);
	assert_nothing_is_left();
	assert_signals_end_us_again();
}

static void an_emulated_guest_is_a_warning(void **state)
{
	static const char warning[] = "is emulated (TCG): the trace will show the emulator, not "
				      "the guest\n";

	assert_int_equal(RECORD("-p", "106", "--", "true"), 0);
	assert_null(strstr(bench.said.text, warning));
	record_options_free(&bench.options);
	fake_tree_thread(&bench.tree, 106, 226, "CPU 7/TCG");
	assert_int_equal(RECORD("-p", "106", "--", "true"), 0);
	assert_non_null(strstr(bench.said.text, warning));
}

static void a_thread_that_is_gone_is_a_warning(void **state)
{
	assert_int_equal(RECORD("-t", "106,4711", "--", "true"), 0);
	assert_non_null(strstr(bench.said.text, "ptvm record: there is no thread 4711 any more\n"));
	assert_null(strstr(bench.said.text, "thread 106"));
}

/* Where libvirtd does not answer, neither before nor after the recording. */
static void who_waits_for_libvirt_can_be_interrupted(void **state)
{
	fake_libvirt.is_down = true;
	assert_int_equal(RECORD("-c", "here:///", "--domain", "vm"), -PTVM_NOT_FOUND);
	assert_string_equal(fake_libvirt.uri, "here:///");
	assert_false(sigismember(&fake_libvirt.held, SIGINT));
	assert_true(sigismember(&fake_libvirt.held, SIGUSR2));
	bench.machine.signal = SIGINT;
	bench.error = (struct ptvm_error){ 0 };
	record_options_free(&bench.options);
	assert_int_equal(RECORD("-p", "106"), 0);
	assert_signals_end_us_again();
}

/* Each thread has an event on each CPU; and who piped our messages may have gone. */
static void the_process_is_prepared(void **state)
{
	struct rlimit limit, before;
	struct sigaction action;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){ 100, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(RECORD("-p", "106", "--", "true"), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(limit.rlim_cur, before.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(sigaction(SIGPIPE, NULL, &action), 0);
	assert_ptr_equal(action.sa_handler, SIG_IGN);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* By ulimit -f, which ends others with a signal. */
static void a_file_that_may_not_grow_ends_a_recording_well(void **state)
{
	(void)signal(SIGXFSZ, SIG_IGN);
	limit_files(30000);
	assert_int_equal(RECORD("-p", "106"), -PTVM_SYSTEM);
	limit_files(RLIM_INFINITY);
	assert_int_equal(bench.error.sys_errno, EFBIG);
	assert_is_kept();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_signal_ends_a_recording_well),
		TEST(the_status_of_the_command_is_that_of_the_recording),
		TEST(one_that_was_never_switched_on_says_so),
		TEST(a_fifo_is_listened_to_meanwhile),
		TEST(a_recording_that_is_full_is_a_good_one),
		TEST(a_file_that_may_not_grow_ends_a_recording_well),
		TEST(a_guest_that_is_not_there_leaves_nothing),
		TEST(a_command_that_is_not_there_leaves_nothing),
		TEST(recordings_before_one_that_fails_stay),
		TEST(a_fifo_that_is_not_there_leaves_nothing),
		TEST(a_kernel_that_refuses_leaves_nothing),
		TEST(an_emulated_guest_is_a_warning),
		TEST(a_thread_that_is_gone_is_a_warning),
		TEST(who_waits_for_libvirt_can_be_interrupted),
		TEST(the_process_is_prepared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
