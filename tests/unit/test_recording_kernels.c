#include "host/record/recording_kernels.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/record/record_options.h"
#include "host/record/record_targets.h"
#include "tests/fake_domain.h"
#include "tests/fake_guest.h"
#include "tests/said.h"

enum { PID = 500 };

/* A host and a guest with the same files, and two ways to those of the guest. */
static struct bench {
	struct fake_tree tree;
	struct fake_agent agent;
	struct record_options options;
	struct trace_machine machine;
	struct record_targets targets;
	struct recording_kernels kernels;
	struct ptvm_error error;
	struct said said;
	sigset_t mask;
	char recording[100], mount[100];
} bench;

static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &bench.mask), 0);
	fake_tree_init(&bench.tree);
	fake_guest_init(&bench.tree);
	(void)snprintf(bench.recording, sizeof(bench.recording), "%s/rec", bench.tree.path);
	assert_int_equal(mkdir(bench.recording, 0700), 0);
	(void)snprintf(bench.mount, sizeof(bench.mount), "mount=%s", bench.tree.path);
	bench.agent.tree = &bench.tree;
	fake_libvirt = (struct fake_libvirt){
		.agent_info = FAKE_AGENT_INFO("true", "true"),
		.agent = &bench.agent,
		.domain = { .name = "vm", .uuid = "uuid of vm", .is_running = true }
	};
	bench.machine = (struct trace_machine){ .vm = { .pid = PID }, .name = "vm" };
	bench.targets.machines.items = &bench.machine;
	bench.targets.machines.count = 1;
	return 0;
}

static int tear_down(void **state)
{
	recording_kernels_free(&bench.kernels);
	assert_int_equal(bench.agent.open, bench.agent.closed);
	assert_int_equal(fake_libvirt.opened, fake_libvirt.closed);
	fake_tree_deinit(&bench.tree);
	return sigprocmask(SIG_SETMASK, &bench.mask, NULL);
}

static int copy_guests(void)
{
	int r;

	said_begin(&bench.said);
	r = recording_kernels_copy_guests(&bench.options, &bench.targets, bench.recording,
					  &bench.kernels, &bench.error);
	(void)said_end(&bench.said);
	return r;
}

/* After copy_guests(). */
static int copy_host(void)
{
	int r;

	said_begin(&bench.said);
	r = recording_kernels_copy_host(&bench.tree.roots, &bench.options, bench.recording,
					&bench.kernels, &bench.error);
	(void)said_end(&bench.said);
	return r;
}

static void copy_again(void)
{
	said_begin(&bench.said);
	recording_kernels_copy_again(&bench.tree.roots, &bench.options, &bench.kernels);
	(void)said_end(&bench.said);
}

static bool is_there(const char *name)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s", bench.recording, name);
	return !access(path, F_OK);
}

static void assert_not_copied(size_t i, const char *why)
{
	assert_false(bench.kernels.items[i].is_copied);
	assert_string_equal(bench.kernels.items[i].why, why);
}

static void a_guest_is_copied_by_the_way_that_was_named(void **state)
{
	bench.options.via = bench.mount;
	assert_int_equal(copy_guests(), 0);
	assert_int_equal(bench.kernels.count, 2);
	assert_null(bench.kernels.items[0].machine);
	assert_ptr_equal(bench.kernels.items[1].machine, &bench.machine);
	assert_true(bench.kernels.items[1].is_copied);
	assert_string_equal(bench.kernels.items[1].copy.release, "6.1.0-fake");
	assert_true(is_there("kcore_dir__500/kcore"));
	assert_false(bench.kernels.items[0].is_copied);
	assert_false(is_there("kcore_dir"));
	assert_string_equal(bench.said.text, "");
}

static void a_domain_of_libvirt_is_asked_for_its_agent(void **state)
{
	(void)strcpy(bench.machine.uuid, "uuid of vm");
	assert_int_equal(copy_guests(), 0);
	assert_true(bench.kernels.items[1].is_copied);
	assert_true(bench.agent.open > 0);
}

static void an_agent_that_nobody_named_may_be_missing(void **state)
{
	(void)strcpy(bench.machine.uuid, "uuid of vm");
	fake_libvirt.agent = NULL;
	fake_libvirt.agent_info = NULL;
	assert_int_equal(copy_guests(), 0);
	assert_not_copied(1, "guest agent: no answer");
	assert_string_equal(
		bench.said.text,
		"ptvm record: the kernel of vm was not copied: guest agent: no answer\n");
	assert_false(is_there("kcore_dir__500"));
}

static void without_a_way_there_is_a_warning(void **state)
{
	bench.machine.name[0] = '\0';
	assert_int_equal(copy_guests(), 0);
	assert_not_copied(1, "no way to it was named, as --via memory");
	assert_string_equal(bench.said.text,
			    "ptvm record: the kernel of the guest was not copied: no way to it "
			    "was named, as --via memory\n");
}

static void who_wants_none_is_not_warned(void **state)
{
	bench.options.via = "none";
	(void)strcpy(bench.machine.uuid, "uuid of vm");
	assert_int_equal(copy_guests(), 0);
	assert_not_copied(1, "--via none");
	assert_string_equal(bench.said.text, "");
	assert_int_equal(bench.agent.open, 0);
}

static void a_way_that_was_named_must_work(void **state)
{
	bench.options.via = "mount=/nonexistent";
	assert_int_equal(copy_guests(), -PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message, "/nonexistent: No such file or directory");
	assert_string_equal(bench.said.text, "");
}

static void the_host_is_copied_from_the_root_of_its_proc(void **state)
{
	bench.options.via = "none";
	assert_int_equal(copy_guests(), 0);
	assert_int_equal(copy_host(), 0);
	assert_true(bench.kernels.items[0].is_copied);
	assert_true(is_there("kcore_dir/kcore"));
	assert_string_equal(bench.said.text, "");
}

/* As where we are not root. */
/* Its files are named as the user knows them. */
static void what_the_host_has_not_is_told_by_its_path(void **state)
{
	char expected[200];

	assert_int_equal(unlink(fake_tree_path(&bench.tree, "proc/kcore")), 0);
	assert_int_equal(copy_guests(), 0);
	assert_int_equal(copy_host(), 0);
	(void)snprintf(expected, sizeof(expected), "%s/kcore: No such file or directory",
		       bench.tree.roots.proc);
	assert_not_copied(0, expected);
}

static void a_host_that_hides_its_kernel_is_left_out(void **state)
{
	bench.options.via = bench.mount; /* which is for guests */
	assert_int_equal(copy_guests(), 0);
	fake_tree_file(&bench.tree, "", "proc/kallsyms");
	assert_int_equal(copy_host(), 0);
	assert_false(bench.kernels.items[0].is_copied);
	assert_non_null(strstr(bench.said.text, "ptvm record: the kernel of the host was not "
						"copied: /proc/kallsyms: "));
	assert_non_null(strstr(bench.said.text, bench.kernels.items[0].why));
	assert_false(is_there("kcore_dir"));
	assert_true(bench.kernels.items[1].is_copied);
}

/* To be there when a copy begins. */
static void interrupt(void)
{
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGINT);
	assert_int_equal(sigprocmask(SIG_BLOCK, &signals, NULL), 0);
	assert_int_equal(raise(SIGINT), 0);
}

static void who_interrupts_wants_no_recording(void **state)
{
	bench.options.via = bench.mount;
	interrupt();
	assert_int_equal(copy_guests(), -PTVM_SYSTEM);
	assert_string_equal(bench.error.message, "interrupted");
	assert_false(is_there("kcore_dir__500"));
	bench.error = (struct ptvm_error){ 0 };
	interrupt();
	assert_int_equal(copy_host(), -PTVM_SYSTEM);
	assert_string_equal(bench.error.message, "interrupted");
	assert_false(is_there("kcore_dir"));
}

static void copy_all(void)
{
	bench.options.via = bench.mount;
	assert_int_equal(copy_guests(), 0);
	assert_int_equal(copy_host(), 0);
}

static void what_did_not_change_is_not_kept_twice(void **state)
{
	copy_all();
	copy_again();
	assert_false(is_there("data.ptvm-kcore"));
	assert_false(is_there("data.ptvm-kcore__500"));
	assert_string_equal(bench.said.text, "");
}

static void what_was_loaded_meanwhile_is_copied_again(void **state)
{
	copy_all();
	fake_tree_file(&bench.tree, "late 8192 0 - Live 0xffffffffc0536000\n", "proc/modules");
	copy_again();
	assert_true(is_there("data.ptvm-kcore"));
	assert_true(is_there("data.ptvm-kcore__500"));
	assert_string_equal(bench.said.text, "");
}

static void what_was_not_copied_is_not_copied_again(void **state)
{
	bench.options.via = "none";
	assert_int_equal(copy_guests(), 0);
	bench.options.via = bench.mount;
	copy_again();
	assert_not_copied(0, "");
	assert_not_copied(1, "--via none");
	assert_string_equal(bench.said.text, "");
}

static void the_first_copy_stays_where_the_second_one_fails(void **state)
{
	copy_all();
	fake_tree_file(&bench.tree, "", "proc/kallsyms");
	copy_again();
	for (size_t i = 0; i < 2; i++) {
		assert_true(bench.kernels.items[i].is_copied);
		assert_non_null(strstr(bench.kernels.items[i].why, "/proc/kallsyms: "));
	}
	assert_non_null(strstr(bench.said.text, "the kernel of the host was not copied again: "));
	assert_non_null(strstr(bench.said.text, "the kernel of vm was not copied again: "));
	assert_true(is_there("kcore_dir/kcore"));
	assert_true(is_there("kcore_dir__500/kcore"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_guest_is_copied_by_the_way_that_was_named),
		TEST(a_domain_of_libvirt_is_asked_for_its_agent),
		TEST(an_agent_that_nobody_named_may_be_missing),
		TEST(without_a_way_there_is_a_warning),
		TEST(who_wants_none_is_not_warned),
		TEST(a_way_that_was_named_must_work),
		TEST(the_host_is_copied_from_the_root_of_its_proc),
		TEST(what_the_host_has_not_is_told_by_its_path),
		TEST(a_host_that_hides_its_kernel_is_left_out),
		TEST(who_interrupts_wants_no_recording),
		TEST(what_did_not_change_is_not_kept_twice),
		TEST(what_was_loaded_meanwhile_is_copied_again),
		TEST(what_was_not_copied_is_not_copied_again),
		TEST(the_first_copy_stays_where_the_second_one_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
