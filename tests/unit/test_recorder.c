#include "host/record/recorder.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/record/record_options.h"
#include "host/record/recording_repair.h"
#include "tests/fake_guest.h"
#include "tests/fake_machine.h"
#include "tests/said.h"

enum { MAX_WAITS = 20000, NEW_TID = 226, LIMITS = 40, SPARE = 64 };

struct bench {
	struct fake_tree tree;
	struct fake_machine machine;
	struct record_options options;
	struct recorder recorder;
	struct trace_loss loss;
	struct ptvm_error error;
	char output[100], data[120];
};

static struct bench bench;

static void start_machine(void)
{
	assert_int_equal(fake_machine_init(&bench.machine, NULL, NULL), 0);
	bench.machine.step = 20;
}

static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	start_machine();
	fake_past_tree(&bench.machine.past, &bench.tree);
	(void)snprintf(bench.output, sizeof(bench.output), "%s/rec", bench.tree.path);
	(void)snprintf(bench.data, sizeof(bench.data), "%s/data", bench.output);
	return 0;
}

static int tear_down(void **state)
{
	fake_machine_deinit(&bench.machine);
	fake_tree_deinit(&bench.tree);
	return 0;
}

/* The options of a command line, which ends with NULL. */
static void choose(const char *const *arguments)
{
	static char words[16][128];
	static char *argv[16];
	int argc = 0;

	for (; arguments[argc]; argc++) {
		(void)snprintf(words[argc], sizeof(words[argc]), "%s", arguments[argc]);
		argv[argc] = words[argc];
	}
	assert_int_equal(record_options_parse(argc, argv, &bench.options, NULL), 0);
	bench.options.output = bench.output;
}

#define CHOOSE(...) choose((const char *const[]){ "record", __VA_ARGS__, NULL })
#define CHOOSE_THREADS() CHOOSE("-t", "106,109,113,226", "-m", "64K,64K", "--via", "none")

static int open_it(void)
{
	bench.recorder = (struct recorder){ .roots = &bench.tree.roots,
					    .kernel = &bench.machine.table,
					    .options = &bench.options,
					    .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	assert_int_equal(record_targets_find(&bench.tree.roots, &bench.options,
					     &bench.recorder.targets, NULL),
			 0);
	return recorder_open(&bench.recorder, &bench.error);
}

/* Waits until all records were played, or a thread ended by itself. */
static void wait_for_end(void)
{
	struct pollfd wake = { .fd = bench.recorder.wake_fd, .events = POLLIN };
	int waits = 0;

	while (!fake_machine_is_over(&bench.machine) && poll(&wake, 1, 1) <= 0)
		assert_true(++waits < MAX_WAITS);
}

static int finish(void)
{
	return recorder_finish(&bench.recorder, &bench.loss, &bench.error);
}

static void close_it(void)
{
	trace_loss_free(&bench.loss);
	recorder_free(&bench.recorder);
	(void)close(bench.recorder.wake_fd);
	record_options_free(&bench.options);
	assert_int_equal(fake_machine_open_count(&bench.machine), 0);
	assert_int_equal(bench.machine.mapped, 0);
}

/* Returns the first failure. */
static int record_all(void)
{
	int r = open_it(), finished;

	if (r)
		return r;
	r = recorder_switch(&bench.recorder, true, &bench.error);
	if (!r)
		wait_for_end();
	finished = finish();
	return r ? r : finished;
}

static void a_recording_is_made_and_complete(void **state)
{
	CHOOSE_THREADS();
	assert_int_equal(record_all(), 0);
	assert_int_equal(bench.loss.threads.count, 0);
	close_it();
	assert_int_equal(recording_repair(bench.data, NULL), 0);
}

static void a_module_that_the_host_loads_meanwhile_is_kept(void **state)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/data.ptvm-kcore", bench.output);
	fake_guest_init(&bench.tree);
	for (unsigned i = 0; i < 2; i++) {
		CHOOSE_THREADS();
		assert_int_equal(open_it(), 0);
		if (i)
			fake_tree_file(&bench.tree, "late 8192 0 - Live 0xffffffffc0536000\n",
				       "proc/modules");
		assert_int_equal(recorder_switch(&bench.recorder, true, NULL), 0);
		assert_int_equal(finish(), 0);
		assert_int_equal(access(path, F_OK), i ? 0 : -1);
		close_it();
	}
}

/* One of the calls only asks the kernel for a property, and its failure is no error. */
static void any_call_that_fails_leaves_nothing_behind(void **state)
{
	unsigned calls, good = 0;

	CHOOSE_THREADS();
	assert_int_equal(open_it(), 0);
	calls = bench.machine.calls;
	assert_true(calls > 60);
	close_it();
	for (unsigned i = 1; i <= calls; i++) {
		fake_machine_deinit(&bench.machine);
		start_machine();
		bench.machine.fail_at = i;
		bench.machine.fail_errno = i % 2 ? ENOMEM : EPERM;
		bench.error = (struct ptvm_error){ 0 };
		CHOOSE_THREADS();
		if (open_it()) {
			assert_int_equal(bench.error.code, PTVM_SYSTEM);
			assert_true(strlen(bench.error.message) > 0);
		} else {
			good++;
		}
		close_it();
		assert_int_not_equal(access(bench.output, F_OK), 0);
	}
	assert_int_equal(good, 1);
}

static void threads_that_ended_are_left_out(void **state)
{
	CHOOSE_THREADS();
	bench.machine.dead = 109;
	assert_int_equal(record_all(), 0);
	close_it();
}

/* What is left of a recording would get its name back where the next one fails. */
static void drop_recording(void)
{
	struct recording_directory left = { .path = "" };

	(void)snprintf(left.path, sizeof(left.path), "%s", bench.output);
	recording_directory_remove(&left);
}

/* The file is a recording by then, or lacks even its header. */
static void a_full_disk_keeps_what_was_written(void **state)
{
	struct rlimit limit, before;
	uint64_t whole;
	int r, kept = 0;

	CHOOSE_THREADS();
	assert_int_equal(record_all(), 0);
	whole = recording_out_size(&bench.recorder.out);
	close_it();
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (uint64_t i = 0; i < LIMITS; i++) {
		drop_recording();
		limit = (struct rlimit){ whole * i / LIMITS + 1, before.rlim_max };
		fake_machine_deinit(&bench.machine);
		start_machine();
		CHOOSE_THREADS();
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		r = record_all();
		close_it();
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_int_equal(r, -PTVM_SYSTEM);
		assert_non_null(strstr(bench.error.message, "File too large"));
		if (access(bench.data, F_OK))
			continue;
		assert_int_equal(recording_repair(bench.data, NULL), 0);
		kept++;
	}
	assert_in_range(kept, LIMITS / 2, LIMITS - 1);
}

/* And hears how to complete it. Who called sudo must be able to do that. */
static void its_owner_gets_it_also_then(void **state)
{
	static struct said said;
	struct rlimit limit, before;
	struct stat about;

	if (geteuid())
		skip();
	assert_int_equal(setenv("SUDO_UID", "1234", 1) | setenv("SUDO_GID", "1234", 1), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ 20 << 10, before.rlim_max };
	CHOOSE("-t", "106,109,113,226", "-m", "64K,64K", "--via", "none");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	said_begin(&said);
	assert_int_equal(record_all(), -PTVM_SYSTEM);
	close_it();
	assert_non_null(strstr(said_end(&said), "/rec lacks its end: once there is room, 'ptvm "
						"record --repair "));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(unsetenv("SUDO_UID") | unsetenv("SUDO_GID"), 0);
	assert_int_equal(stat(bench.data, &about), 0);
	assert_int_equal(about.st_uid, 1234);
	assert_int_equal(stat(bench.output, &about), 0);
	assert_int_equal(about.st_uid, 1234);
}

static void a_recording_ends_at_its_limit(void **state)
{
	CHOOSE("-t", "113", "-m", "64K,64K", "--max-size", "20K");
	assert_int_equal(record_all(), -PTVM_END);
	close_it();
	assert_int_equal(recording_repair(bench.data, NULL), 0);
}

static void vcpus_that_are_plugged_in_are_traced(void **state)
{
	size_t before;

	CHOOSE("-p", "106", "-m", "64K,64K", "--via", "none");
	assert_int_equal(open_it(), 0);
	assert_int_equal(recorder_switch(&bench.recorder, true, NULL), 0);
	assert_int_equal(bench.recorder.guests.count, 1);
	before = fake_machine_open_count(&bench.machine);
	assert_int_equal(recorder_look(&bench.recorder, NULL), 0);
	assert_int_equal(fake_machine_open_count(&bench.machine), before);
	fake_tree_thread(&bench.tree, 106, NEW_TID, "CPU 1/KVM");
	assert_int_equal(recorder_look(&bench.recorder, NULL), 0);
	/* Its trace and its maps, on each of two CPUs. */
	assert_int_equal(fake_machine_open_count(&bench.machine), before + 4);
	assert_int_equal(bench.recorder.guests.count, 2);
	assert_int_equal(bench.recorder.guests.all[1].tid, NEW_TID);
	wait_for_end();
	assert_int_equal(finish(), 0);
	close_it();
}

/* The threads that drain have ended by themselves when one is plugged in. */
static void one_that_comes_at_the_limit_does_not_hide_it(void **state)
{
	CHOOSE("-p", "106", "-m", "64K,64K", "--via", "none", "--max-size", "20K");
	assert_int_equal(open_it(), 0);
	assert_int_equal(recorder_switch(&bench.recorder, true, NULL), 0);
	wait_for_end();
	fake_tree_thread(&bench.tree, 106, NEW_TID, "CPU 1/KVM");
	assert_int_equal(recorder_look(&bench.recorder, &bench.error), 0);
	assert_int_equal(finish(), -PTVM_END);
	close_it();
	assert_int_equal(recording_repair(bench.data, NULL), 0);
}

static void one_that_ends_at_once_does_no_harm(void **state)
{
	CHOOSE("-p", "106", "-m", "64K,64K", "--via", "none");
	assert_int_equal(open_it(), 0);
	assert_int_equal(recorder_switch(&bench.recorder, true, NULL), 0);
	bench.machine.dead = NEW_TID;
	fake_tree_thread(&bench.tree, 106, NEW_TID, "CPU 1/KVM");
	assert_int_equal(recorder_look(&bench.recorder, &bench.error), 0);
	wait_for_end();
	assert_int_equal(finish(), 0);
	close_it();
}

static void more_than_can_be_named_do_not_end_it(void **state)
{
	static struct said said;
	char name[32];

	CHOOSE("-p", "106", "-m", "64K,64K", "--via", "none");
	assert_int_equal(open_it(), 0);
	assert_int_equal(recorder_switch(&bench.recorder, true, NULL), 0);
	for (int i = 1; i <= SPARE + 2; i++) {
		(void)snprintf(name, sizeof(name), "CPU %d/KVM", i);
		fake_tree_thread(&bench.tree, 106, NEW_TID + i, name);
	}
	said_begin(&said);
	assert_int_equal(recorder_look(&bench.recorder, &bench.error), 0);
	assert_non_null(strstr(said_end(&said), "came, and is not traced: "
						"the recording has room for no more\n"));
	assert_int_equal(bench.recorder.guests.count, 1 + SPARE);
	assert_int_equal(recorder_look(&bench.recorder, &bench.error), 0);
	wait_for_end();
	assert_int_equal(finish(), 0);
	close_it();
}

static void snapshots_are_taken_when_asked_for(void **state)
{
	CHOOSE("-t", "106,109,113,226", "-m", "64K,32K", "-S");
	assert_int_equal(open_it(), 0);
	assert_int_equal(recorder_switch(&bench.recorder, true, NULL), 0);
	wait_for_end();
	assert_int_equal(recorder_snapshot(&bench.recorder, NULL), 0);
	assert_int_equal(recorder_snapshot(&bench.recorder, NULL), 0);
	assert_int_equal(bench.recorder.snapshots, 2);
	assert_int_equal(finish(), 0);
	/* Of two CPUs. */
	assert_int_equal(bench.recorder.out.index.count, 4);
	close_it();
}

static void nothing_is_kept_where_nothing_was_switched_on(void **state)
{
	static struct said said;
	char path[120];

	CHOOSE_THREADS();
	fake_guest_init(&bench.tree);
	assert_int_equal(open_it(), 0);
	/* Which a second copy of the host's kernel would miss. */
	(void)snprintf(path, sizeof(path), "%s/proc/kallsyms", bench.tree.path);
	assert_int_equal(unlink(path), 0);
	said_begin(&said);
	assert_int_equal(finish(), 0);
	assert_string_equal(said_end(&said), "");
	close_it();
	assert_int_not_equal(access(bench.output, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_recording_is_made_and_complete),
		TEST(a_module_that_the_host_loads_meanwhile_is_kept),
		TEST(any_call_that_fails_leaves_nothing_behind),
		TEST(threads_that_ended_are_left_out),
		TEST(a_full_disk_keeps_what_was_written),
		TEST(its_owner_gets_it_also_then),
		TEST(a_recording_ends_at_its_limit),
		TEST(vcpus_that_are_plugged_in_are_traced),
		TEST(one_that_comes_at_the_limit_does_not_hide_it),
		TEST(one_that_ends_at_once_does_no_harm),
		TEST(more_than_can_be_named_do_not_end_it),
		TEST(snapshots_are_taken_when_asked_for),
		TEST(nothing_is_kept_where_nothing_was_switched_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
