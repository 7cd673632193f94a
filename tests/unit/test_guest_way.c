#include "host/vm/guest_way.h"

#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest/channel.h"
#include "tests/fake_domain.h"
#include "tests/fake_guest.h"
#include "tests/fake_linux.h"

/* Of no process that runs here. */
static const char uuid[] = "6b1cbf0e-7c52-4b8a-bd3c-9d4f11b0e0aa";

static struct fixture {
	struct fake_tree tree;
	struct fake_agent agent;
	struct fake_linux guest;
	struct guest_way way;
	struct guest_target target;
	struct ptvm_error error;
	char registers[200];
} fixture;

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fake_tree_init(&fixture.tree);
	fake_tree_file(&fixture.tree, "0123456789", "proc/digits");
	fixture.agent.tree = &fixture.tree;
	fake_linux_init(&fixture.guest, false);
	fake_libvirt = (struct fake_libvirt){
		.domain = { .name = "vm", .id = 3, .is_running = true, .state = "running" },
		.agent_info = FAKE_AGENT_INFO("true", "true"),
		.agent = &fixture.agent,
		.memory = &fixture.guest.memory.reader,
		.registers = fixture.registers,
		.memory_tree = " AS \"memory\", root: system\n Root memory region: system\n"
			       "  0000000000000000-00000000001fffff (prio 0, ram): pc.ram\n",
	};
	(void)strcpy(fake_libvirt.domain.uuid, uuid);
	(void)snprintf(fixture.registers, sizeof(fixture.registers),
		       "CPU#0\nCR0=80050033 CR3=%016" PRIx64
		       " CR4=00750ea0\nEFER=0000000000000d01\n",
		       fixture.guest.memory.root.cr3);
	fixture.target = (struct guest_target){ .uri = "test:///", .domain = "vm" };
	return 0;
}

static int tear_down(void **state)
{
	guest_way_close(&fixture.way);
	assert_int_equal(fake_libvirt.opened, fake_libvirt.closed);
	assert_int_equal(fixture.agent.open, fixture.agent.closed);
	fake_linux_deinit(&fixture.guest);
	fake_tree_deinit(&fixture.tree);
	return 0;
}

static int open_way(const char *via)
{
	fixture.error = (struct ptvm_error){ 0 };
	return guest_way_open(via, &fixture.target, &fixture.way, &fixture.error);
}

static void assert_fails(const char *via, int code, const char *message)
{
	assert_int_equal(open_way(via), code);
	assert_string_equal(fixture.error.message, message);
	guest_way_close(&fixture.way);
	fixture.way = (struct guest_way){ .memory.file = -1 };
}

static void assert_reads(const char *path, const char *begin)
{
	char text[16];

	assert_true(channel_read_text(fixture.way.channel, path, text, strlen(begin) + 1, NULL) >
		    0);
	assert_string_equal(text, begin);
}

static void ways_are_taken_one_by_one(void **state)
{
	const char *list = "agent,ssh=root@a,,mount=/x,";
	char via[GUEST_WAY_BYTES];

	guest_way_next(&list, via);
	assert_string_equal(via, "agent");
	guest_way_next(&list, via);
	assert_string_equal(via, "ssh=root@a");
	guest_way_next(&list, via);
	assert_string_equal(via, "");
	guest_way_next(&list, via);
	assert_string_equal(via, "mount=/x");
	guest_way_next(&list, via);
	assert_string_equal(via, "");
	assert_null(list);
}

static void a_way_that_is_too_long_is_none(void **state)
{
	char text[GUEST_WAY_BYTES + 8], via[GUEST_WAY_BYTES];
	const char *list = text;

	memset(text, 'x', sizeof(text));
	(void)strcpy(text + GUEST_WAY_BYTES - 1, ",agent");
	guest_way_next(&list, via);
	assert_int_equal(strlen(via), GUEST_WAY_BYTES - 1);
	memset(text, 'x', GUEST_WAY_BYTES);
	(void)strcpy(text + GUEST_WAY_BYTES, ",agent");
	list = text;
	guest_way_next(&list, via);
	assert_string_equal(via, "");
	assert_string_equal(list, "agent");
	list = text;
	assert_int_equal(guest_way_check(list, true, NULL), -PTVM_BAD_USAGE);
}

static void assert_name(const char *domain, pid_t pid, const char *message)
{
	struct ptvm_error error = { 0 };

	assert_int_equal(guest_way_check_name(domain, pid, &error), message ? -PTVM_BAD_USAGE : 0);
	assert_string_equal(error.message, message ? message : "");
}

static void a_guest_is_named_once(void **state)
{
	assert_name(NULL, 0, NULL);
	assert_name("vm", 0, NULL);
	assert_name(NULL, 1, NULL);
	assert_name(NULL, INT_MAX, NULL);
	assert_name("", 0, "--domain needs the name of a guest");
	assert_name("", 7, "--domain needs the name of a guest");
	assert_name("vm", 7, "--domain and -p both name the guest");
}

static void assert_no_pid(const char *text, const char *message)
{
	struct ptvm_error error = { 0 };
	pid_t pid = 5;

	assert_int_equal(guest_way_read_pid(&pid, text, &error), -PTVM_BAD_USAGE);
	assert_string_equal(error.message, message);
	assert_int_equal(pid, 5);
}

static void a_process_has_a_positive_number(void **state)
{
	pid_t pid;

	assert_int_equal(guest_way_read_pid(&pid, "2147483647", NULL), 0);
	assert_int_equal(pid, INT_MAX);
	assert_no_pid("2147483648", "-p takes the number of a process, not '2147483648'");
	assert_no_pid("0", "-p takes the number of a process, not '0'");
	assert_no_pid("-1", "-p takes the number of a process, not '-1'");
	assert_no_pid("12a", "-p takes the number of a process, not '12a'");
	assert_no_pid("", "-p takes the number of a process, not ''");
}

static void assert_list(const char *list, bool has_domain, bool is_good)
{
	assert_int_equal(guest_way_check(list, has_domain, NULL), is_good ? 0 : -PTVM_BAD_USAGE);
}

static void lists_are_checked_as_a_whole(void **state)
{
	assert_list("agent", true, true);
	assert_list("agent,ssh=a,mount=/x,memory", true, true);
	assert_list("agent", false, false);
	assert_list("memory", false, false);
	assert_list("mount=/x,ssh=a", false, true);
	assert_list("mount=/x,agent", false, false);
	assert_list("", true, false);
	assert_list("agent,,memory", true, false);
	assert_list("agents", true, false);
	assert_list("ssh", true, false);
	assert_list("agent,vnc", true, false);
	assert_list("agent,", true, false);
	assert_list(",agent", true, false);
}

static void what_is_wrong_with_a_list_is_told(void **state)
{
	assert_int_equal(guest_way_check("agent,vnc", true, &fixture.error), -PTVM_BAD_USAGE);
	assert_string_equal(fixture.error.message,
			    "--via takes agent, ssh=[USER@]HOST, mount=DIR or memory, not 'vnc'");
}

static void a_mount_needs_no_libvirt(void **state)
{
	char via[128];

	fake_libvirt.is_down = true;
	(void)snprintf(via, sizeof(via), "mount=%s", fixture.tree.path);
	assert_int_equal(open_way(via), 0);
	assert_reads("/proc/digits", "0123");
	assert_false(fixture.way.has_asked_monitor);
	guest_way_close(&fixture.way);
	assert_fails("mount=/nonexistent", -PTVM_NOT_FOUND,
		     "/nonexistent: No such file or directory");
}

static void neither_does_ssh(void **state)
{
	fake_libvirt.is_down = true;
	assert_fails("ssh=", -PTVM_BAD_USAGE, "ssh: no host is named");
	assert_int_equal(open_way("ssh=root@guest"), 0);
	assert_string_equal(fixture.way.channel->way->name, "ssh");
}

static void the_agent_is_that_of_the_domain(void **state)
{
	assert_int_equal(open_way("agent"), 0);
	assert_string_equal(fake_libvirt.uri, "test:///");
	assert_string_equal(fixture.way.domain.name, "vm");
	assert_reads("/proc/digits", "0123");
	assert_int_equal(fixture.agent.open, 1);
	assert_false(fixture.way.has_asked_monitor);
}

static void a_domain_must_be_known_and_run(void **state)
{
	fixture.target.domain = "other";
	assert_fails("agent", -PTVM_NOT_FOUND, "libvirt knows no domain 'other'");
	assert_fails("memory", -PTVM_NOT_FOUND, "libvirt knows no domain 'other'");
	fixture.target.domain = "vm";
	fake_libvirt.domain.is_running = false;
	fake_libvirt.domain.state = "paused";
	assert_fails("agent", -PTVM_NOT_FOUND, "domain 'vm' is paused");
	fixture.target.domain = "";
	assert_fails("agent", -PTVM_NOT_FOUND,
		     "the process has no -uuid by which libvirt could know it; --via memory, "
		     "ssh=HOST or mount=DIR need no libvirt");
}

static void a_libvirt_that_is_down_is_told(void **state)
{
	fake_libvirt.is_down = true;
	assert_fails("agent", -PTVM_SYSTEM, "no libvirtd; " DOMAIN_LINK_REMEDY);
}

static void memory_is_where_the_monitor_says(void **state)
{
	fixture.target.pid = getpid();
	assert_int_equal(open_way("memory"), 0);
	assert_true(fixture.way.has_asked_monitor);
	assert_reads("/proc/modules", "module_1 ");
}

/* By the number of a process which runs no machine: this one. */
static void memory_is_searched_where_the_monitor_does_not_tell(void **state)
{
	char message[200];

	fake_libvirt.registers = NULL;
	fixture.target.pid = getpid();
	assert_true(open_way("memory") < 0);
	assert_null(strstr(fixture.error.message, "monitor"));
	(void)snprintf(message, sizeof(message), "%d", getpid());
	assert_non_null(strstr(fixture.error.message, message));
	assert_true(fixture.way.has_asked_monitor);
}

static void without_a_process_the_monitor_has_the_last_word(void **state)
{
	fake_libvirt.registers = NULL;
	assert_int_equal(open_way("memory"), -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message, "QEMU's monitor: no answer");
	assert_true(fixture.way.has_asked_monitor);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_are_taken_one_by_one),
		cmocka_unit_test(a_way_that_is_too_long_is_none),
		cmocka_unit_test(a_guest_is_named_once),
		cmocka_unit_test(a_process_has_a_positive_number),
		cmocka_unit_test(lists_are_checked_as_a_whole),
		TEST(what_is_wrong_with_a_list_is_told),
		TEST(a_mount_needs_no_libvirt),
		TEST(neither_does_ssh),
		TEST(the_agent_is_that_of_the_domain),
		TEST(a_domain_must_be_known_and_run),
		TEST(a_libvirt_that_is_down_is_told),
		TEST(memory_is_where_the_monitor_says),
		TEST(memory_is_searched_where_the_monitor_does_not_tell),
		TEST(without_a_process_the_monitor_has_the_last_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
