#include "host/record/trace_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/vm/domain.h"
#include "tests/fake_tree.h"

#define UUID "9e994102-3495-4346-9bac-e424641fa3f0"
#define ARGUMENTS "qemu\0-enable-kvm\0-name\0guest=vm\0-uuid\0" UUID

struct bench {
	struct fake_tree tree;
	struct trace_machine machine;
	struct ptvm_error error;
};

static struct bench bench;
static const char nowhere[] = "nowhere:///";

static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_tree_process(&bench.tree, 100, "qemu-system-x86", ARGUMENTS, sizeof(ARGUMENTS));
	for (int i = 0; i < 4; i++) {
		char comm[] = "CPU 0/KVM";

		comm[4] = (char)('0' + i);
		fake_tree_thread(&bench.tree, 100, 101 + i, comm);
	}
	return 0;
}

static int tear_down(void **state)
{
	trace_machine_free(&bench.machine);
	fake_tree_deinit(&bench.tree);
	return 0;
}

static int find(const char *name)
{
	trace_machine_free(&bench.machine);
	memset(&bench.machine, 0, sizeof(bench.machine));
	bench.error = (struct ptvm_error){ 0 };
	return trace_machine_of_domain(&bench.tree.roots, nowhere, name, &bench.machine,
				       &bench.error);
}

static void without_libvirt_command_lines_tell(void **state)
{
	assert_int_equal(find("vm"), 0);
	assert_int_equal(bench.machine.vm.pid, 100);
	assert_string_equal(bench.machine.uuid, UUID);
	assert_false(bench.machine.has_domain);
	assert_int_equal(bench.machine.vcpus.count, 4);
	assert_int_equal(find(UUID), 0);
	assert_string_equal(bench.machine.name, "vm");
}

static void a_name_that_nobody_has_is_told(void **state)
{
	assert_int_equal(find("other"), -PTVM_NOT_FOUND);
	assert_non_null(strstr(bench.error.message, "no process runs a machine called 'other', and "
						    "libvirt cannot be asked: "));
}

static void a_name_that_two_have_is_told(void **state)
{
	fake_tree_process(&bench.tree, 200, "qemu-system-x86", ARGUMENTS, sizeof(ARGUMENTS));
	assert_int_equal(find("vm"), -PTVM_INCONSISTENT);
	assert_non_null(strstr(bench.error.message, "both run a machine called 'vm'"));
}

static void a_process_is_a_machine_where_it_runs_one(void **state)
{
	fake_tree_process(&bench.tree, 300, "sleep", "sleep", 6);
	assert_int_equal(trace_machine_of_process(&bench.tree.roots, 300, &bench.machine, NULL),
			 -PTVM_BAD_INPUT);
	assert_int_equal(trace_machine_of_process(&bench.tree.roots, 301, &bench.machine, NULL),
			 -PTVM_NOT_FOUND);
	assert_int_equal(trace_machine_of_process(&bench.tree.roots, 100, &bench.machine, NULL), 0);
	assert_string_equal(bench.machine.name, "vm");
}

static int choose(const char *list)
{
	struct number_ranges wanted;

	assert_int_equal(number_ranges_parse("--vcpu", list, &wanted, NULL), 0);
	return trace_machine_select(&bench.machine, &wanted, &bench.error);
}

static void vcpus_are_chosen_by_their_numbers(void **state)
{
	const struct number_ranges all = { .count = 0 };

	assert_int_equal(find("vm"), 0);
	assert_int_equal(trace_machine_select(&bench.machine, &all, NULL), 0);
	assert_int_equal(bench.machine.vcpus.count, 4);
	assert_int_equal(choose("0,2-3"), 0);
	assert_int_equal(bench.machine.vcpus.count, 3);
	assert_int_equal(bench.machine.vcpus.items[1].tid, 103);
	assert_int_equal(choose("1"), -PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message, "machine 'vm' has 3 vCPUs that are known, not all "
						 "of those wanted");
	assert_int_equal(choose("2-9"), -PTVM_NOT_FOUND);
	assert_int_equal(bench.machine.vcpus.count, 3);
}

/* For libvirt's own test driver, which reads its domains from a file. */
static const char node[] =
	"<node xmlns:test='http://libvirt.org/schemas/domain/test/1.0'><domain type='test'>"
	"<name>vm</name><uuid>" UUID "</uuid><memory>4096</memory><vcpu>1</vcpu>"
	"<os><type>hvm</type></os><test:runstate>1</test:runstate></domain></node>";

/* A libvirt where the domain runs; skips where there is none. */
static const char *make_libvirt(void)
{
	static char uri[sizeof(bench.tree.path) + 32];
	struct domain_link *link = NULL;

	fake_tree_file(&bench.tree, node, "node.xml");
	(void)snprintf(uri, sizeof(uri), "test://%s/node.xml", bench.tree.path);
	if (domain_link_open(uri, true, &link, NULL))
		skip();
	domain_link_close(link);
	return uri;
}

static void assert_versions(const char *uri, bool has_vmm)
{
	trace_machine_free(&bench.machine);
	memset(&bench.machine, 0, sizeof(bench.machine));
	assert_int_equal(
		trace_machine_of_domain(&bench.tree.roots, uri, "vm", &bench.machine, NULL), 0);
	assert_true(bench.machine.has_domain);
	assert_non_null(strchr(bench.machine.versions.libvirt, '.'));
	assert_int_equal(strlen(bench.machine.versions.vmm) != 0, has_vmm);
}

static void versions_are_those_of_what_runs(void **state)
{
	const char *uri = make_libvirt();
	char link[128];

	(void)snprintf(link, sizeof(link), "%s/proc/100/exe", bench.tree.path);
	fake_tree_link(&bench.tree, "/usr/bin/qemu", "proc/100/exe");
	assert_versions(uri, true);
	assert_int_equal(unlink(link), 0);
	fake_tree_link(&bench.tree, "/usr/bin/qemu (deleted)", "proc/100/exe");
	assert_versions(uri, false);
}

static void a_domain_whose_process_is_elsewhere_is_told(void **state)
{
	const char *uri = make_libvirt();

	fake_tree_process(&bench.tree, 100, "other", "other", sizeof("other"));
	assert_int_equal(
		trace_machine_of_domain(&bench.tree.roots, uri, "vm", &bench.machine, &bench.error),
		-PTVM_NOT_FOUND);
	assert_string_equal(bench.error.message,
			    "domain 'vm' is running, but no process here has its UUID " UUID
			    ": record on the host that runs it");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_libvirt_command_lines_tell),
		TEST(a_name_that_nobody_has_is_told),
		TEST(a_name_that_two_have_is_told),
		TEST(a_process_is_a_machine_where_it_runs_one),
		TEST(vcpus_are_chosen_by_their_numbers),
		TEST(versions_are_those_of_what_runs),
		TEST(a_domain_whose_process_is_elsewhere_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
