#include "host/check_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fake_domain.h"
#include "tests/fake_guest.h"

#define UUID "11111111-2222-3333-4444-555555555555"

enum { PID = 500 };

static struct bench {
	struct fake_tree tree;
	struct fake_agent agent;
	struct check_list list;
	struct check_guest guest;
} bench;

/* libvirt runs a machine "vm", whose process is here. */
static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	bench.agent.tree = &bench.tree;
	bench.guest = (struct check_guest){ .uri = "test:///", .name = "vm" };
	fake_libvirt = (struct fake_libvirt){ .domain = { .name = "vm",
							  .uuid = UUID,
							  .id = 3,
							  .is_running = true,
							  .state = "running" },
					      .agent_info = FAKE_AGENT_INFO("true", "true"),
					      .agent = &bench.agent };
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(fake_libvirt.opened, fake_libvirt.closed);
	fake_tree_deinit(&bench.tree);
	return 0;
}

/* A process with these arguments, which end with a NUL each. */
static void put_process(const char *arguments, size_t size)
{
	fake_tree_process(&bench.tree, PID, "qemu-system-x86", arguments, size);
	fake_tree_thread(&bench.tree, PID, PID + 1, "CPU 0/KVM");
}

#define PROCESS(arguments) put_process(arguments, sizeof(arguments))
#define PROCESS_WITH_AGENT()                                                                       \
	PROCESS("qemu\0-uuid\0" UUID "\0-accel\0kvm\0-device\0name=org.qemu.guest_agent.0")

static void look(void)
{
	memset(&bench.list, 0, sizeof(bench.list));
	check_guest(&bench.tree.roots, &bench.guest, &bench.list);
}

static const struct check_item *item(const char *name)
{
	for (size_t i = 0; i < bench.list.count; i++)
		if (!strcmp(bench.list.items[i].name, name))
			return &bench.list.items[i];
	fail_msg("no item %s", name);
	return NULL;
}

static void assert_item(const char *name, enum check_verdict verdict, const char *value)
{
	assert_string_equal(item(name)->value, value);
	assert_string_equal(check_verdict_text(item(name)->verdict), check_verdict_text(verdict));
}

static void libvirt_is_reached_or_not(void **state)
{
	check_libvirt("test:///", &bench.list);
	assert_item("libvirt", CHECK_OK, "fake, version 9.0.0, 1 running");
	assert_string_equal(fake_libvirt.uri, "test:///");
	assert_true(fake_libvirt.is_read_only);
	memset(&bench.list, 0, sizeof(bench.list));
	fake_libvirt.is_down = true;
	check_libvirt(NULL, &bench.list);
	assert_item("libvirt", CHECK_WARNING, "no libvirtd");
	assert_string_equal(item("libvirt")->remedy, DOMAIN_LINK_REMEDY);
}

static void a_domain_that_runs_is_found_with_its_process(void **state)
{
	PROCESS_WITH_AGENT();
	fake_tree_file(&bench.tree, "1\n", "proc/sys/kernel/kptr_restrict");
	look();
	assert_item("domain", CHECK_OK, "vm, id 3, " UUID ", running");
	assert_item("process", CHECK_OK, "500, qemu-system-x86");
	assert_item("guest agent", CHECK_OK, "version 7.2.0, reads files, runs commands");
	assert_item("guest kptr_restrict", CHECK_OK, "1");
	assert_int_equal(check_count(&bench.list, CHECK_BLOCKS), 0);
}

static void a_domain_that_is_paused_is_a_warning(void **state)
{
	PROCESS_WITH_AGENT();
	fake_libvirt.domain.is_running = false;
	fake_libvirt.domain.state = "paused";
	look();
	assert_item("domain", CHECK_WARNING, "vm, id 3, " UUID ", paused");
	assert_item("process", CHECK_OK, "500, qemu-system-x86");
}

static void a_domain_that_is_off_blocks(void **state)
{
	PROCESS_WITH_AGENT();
	fake_libvirt.domain.id = -1;
	fake_libvirt.domain.state = "shut off";
	look();
	assert_item("domain", CHECK_BLOCKS, "vm, " UUID ", shut off");
	assert_item("process", CHECK_BLOCKS, "none found");
	assert_int_equal(bench.list.count, 2);
}

static void a_domain_whose_process_is_elsewhere_blocks(void **state)
{
	look();
	assert_item("domain", CHECK_OK, "vm, id 3, " UUID ", running");
	assert_item("process", CHECK_BLOCKS, "none found");
}

static void a_machine_that_libvirt_does_not_know_is_found_too(void **state)
{
	bench.guest.name = "mine";
	PROCESS("qemu\0-name\0mine\0-accel\0kvm");
	look();
	assert_item("domain", CHECK_OK, "mine, found without libvirt");
	assert_item("process", CHECK_OK, "500, qemu-system-x86");
	assert_true(fake_libvirt.is_read_only); /* whoever asks no agent needs no more */
	fake_libvirt.is_down = true;
	look();
	assert_item("domain", CHECK_OK, "mine, found without libvirt");
}

static void what_an_agent_allows_is_told(void **state)
{
	PROCESS_WITH_AGENT();
	fake_libvirt.agent_info = FAKE_AGENT_INFO("true", "false");
	look();
	assert_item("guest agent", CHECK_OK, "version 7.2.0, reads files, runs no commands");
	fake_libvirt.agent_info = FAKE_AGENT_INFO("false", "true");
	look();
	assert_item("guest agent", CHECK_OK, "version 7.2.0, runs commands, reads no files");
	fake_libvirt.agent_info = FAKE_AGENT_INFO("false", "false");
	look();
	assert_item("guest agent", CHECK_WARNING,
		    "version 7.2.0, reads no files, runs no commands");
}

static void an_agent_that_does_not_answer_is_a_warning(void **state)
{
	PROCESS_WITH_AGENT();
	fake_libvirt.agent_info = NULL;
	look();
	assert_item("guest agent", CHECK_WARNING, "guest agent: no answer");
	assert_item("guest kptr_restrict", CHECK_WARNING, "unknown without the agent");
	fake_libvirt.agent_info = "{}";
	look();
	assert_item("guest agent", CHECK_WARNING, "the guest agent's reply makes no sense");
	bench.guest = (struct check_guest){ .pid = PID };
	fake_libvirt.is_down = true;
	look();
	assert_item("guest agent", CHECK_WARNING, "no libvirtd");
}

static void a_guest_that_hides_its_symbols_is_a_warning(void **state)
{
	PROCESS_WITH_AGENT();
	fake_tree_file(&bench.tree, "2\n", "proc/sys/kernel/kptr_restrict");
	look();
	assert_item("guest kptr_restrict", CHECK_WARNING, "2");
	fake_tree_file(&bench.tree, "0\n", "proc/sys/kernel/kptr_restrict");
	look();
	assert_item("guest kptr_restrict", CHECK_OK, "0");
	fake_tree_file(&bench.tree, "", "proc/sys/kernel/kptr_restrict");
	look();
	assert_item("guest kptr_restrict", CHECK_WARNING, "unknown, the agent does not read it");
	bench.agent.lie = FAKE_READ_FAILS;
	look();
	assert_item("guest kptr_restrict", CHECK_WARNING, "unknown, the agent does not read it");
}

static void an_emulator_blocks(void **state)
{
	PROCESS("qemu\0-uuid\0" UUID "\0-accel\0tcg");
	look();
	assert_item("accelerator", CHECK_BLOCKS, "TCG, an emulator");
	for (size_t i = 0; i < bench.list.count; i++)
		assert_string_not_equal(bench.list.items[i].name, "TSC offsets"); /* of KVM */
	PROCESS("qemu\0-uuid\0" UUID "\0-accel\0kvm");
	look();
	assert_item("accelerator", CHECK_OK, "KVM");
	fake_tree_thread(&bench.tree, PID, PID + 1, "CPU 0/TCG");
	look();
	assert_item("accelerator", CHECK_BLOCKS, "TCG, an emulator");
}

static void what_runs_it_may_be_unknown(void **state)
{
	static const char arguments[] = "vmm\0-uuid\0" UUID;

	fake_tree_process(&bench.tree, PID, "vmm", arguments, sizeof(arguments));
	look();
	assert_item("accelerator", CHECK_WARNING, "unknown");
	assert_item("vCPU threads", CHECK_BLOCKS, "none found");
}

static void memory_that_is_hidden_is_a_warning(void **state)
{
	PROCESS("qemu\0-uuid\0" UUID "\0-object\0sev-guest,id=a");
	look();
	assert_item("guest memory", CHECK_WARNING, "SEV");
	PROCESS("qemu\0-uuid\0" UUID "\0-object\0tdx-guest,id=a");
	look();
	assert_item("guest memory", CHECK_WARNING, "TDX");
	PROCESS("qemu\0-uuid\0" UUID);
	fake_tree_link(&bench.tree, "anon_inode:[kvm-gmem]", "proc/%d/fd/9", PID);
	look();
	assert_item("guest memory", CHECK_WARNING, "guest_memfd");
}

static void a_guest_by_its_process_needs_no_libvirt(void **state)
{

	bench.guest = (struct check_guest){ .pid = PID };
	PROCESS("qemu\0-accel\0kvm");
	fake_tree_link(&bench.tree, "anon_inode:kvm-vcpu:0", "proc/500/fd/9");
	look();
	assert_int_equal(fake_libvirt.opened, 0);
	assert_int_equal(check_count(&bench.list, CHECK_BLOCKS), 0);
	assert_string_equal(item("process")->value, "500, qemu-system-x86");
	assert_string_equal(item("accelerator")->value, "KVM");
	assert_string_equal(item("vCPU threads")->value, "1: 0=501 (name)");
	assert_string_equal(item("TSC offsets")->value, "unknown");
	assert_string_equal(item("guest agent")->value, "no channel to one");
	assert_string_equal(item("guest memory")->value, "open to the host");
}

static void the_clocks_of_vcpus_are_told(void **state)
{

	bench.guest = (struct check_guest){ .pid = PID };
	PROCESS("qemu\0-accel\0kvm");
	fake_tree_thread(&bench.tree, 500, 502, "CPU 1/KVM");
	fake_tree_file(&bench.tree, "-29000000000\n", "debugfs/kvm/500-9/vcpu0/tsc-offset");
	fake_tree_file(&bench.tree, "7\n", "debugfs/kvm/500-9/vcpu1/tsc-offset");
	fake_tree_file(&bench.tree, "253327379052953\n",
		       "debugfs/kvm/500-9/vcpu1/tsc-scaling-ratio");
	fake_tree_file(&bench.tree, "48\n", "debugfs/kvm/500-9/vcpu1/tsc-scaling-ratio-frac-bits");
	look();
	assert_string_equal(item("TSC offsets")->value, "0=-29000000000 1=7 (scaled)");
}

static void threads_that_are_missing_or_disputed_are_told(void **state)
{

	bench.guest = (struct check_guest){ .pid = PID };
	fake_tree_process(&bench.tree, PID, "firecracker", "fc", 3);
	fake_tree_link(&bench.tree, "anon_inode:kvm-vcpu:0", "proc/500/fd/9");
	fake_tree_link(&bench.tree, "anon_inode:kvm-vcpu:1", "proc/500/fd/10");
	look();
	assert_int_equal(item("vCPU threads")->verdict, CHECK_BLOCKS);

	fake_tree_thread(&bench.tree, 500, 501, "fc_vcpu 0");
	look();
	assert_string_equal(item("vCPU threads")->value, "1 of 2: 0=501 (name)");

	fake_tree_thread(&bench.tree, 500, 502, "fc_vcpu 1");
	fake_tree_file(&bench.tree, "502\n", "debugfs/kvm/500-9/vcpu0/pid");
	look();
	assert_string_equal(item("vCPU threads")->value,
			    "2: 0=502 (debugfs) 1=502 (name); name disagrees");
}

static void a_guest_that_is_not_there_blocks(void **state)
{
	bench.guest = (struct check_guest){ .pid = 4711 };
	look();
	assert_item("process", CHECK_BLOCKS, "there is no process 4711");
	bench.guest = (struct check_guest){ .name = "other" };
	fake_tree_process(&bench.tree, 1, "init", "init", sizeof("init"));
	look();
	assert_int_equal(bench.list.count, 2);
	assert_item("process", CHECK_BLOCKS, "none found");
	assert_item("domain", CHECK_BLOCKS,
		    "'other' is not known to libvirt, and no process runs a machine called "
		    "'other'");
}

/* More than can be shown. */
static void many_vcpus_are_cut(void **state)
{
	PROCESS("qemu\0-uuid\0" UUID "\0-accel\0kvm");
	for (int i = 0; i < 64; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "CPU %d/KVM", i);
		fake_tree_thread(&bench.tree, PID, PID + 1 + i, name);
		fake_tree_file(&bench.tree, "-29000000000\n", "debugfs/kvm/500-9/vcpu%d/tsc-offset",
			       i);
	}
	look();
	assert_int_equal(item("vCPU threads")->verdict, CHECK_OK);
	assert_int_equal(strncmp(item("vCPU threads")->value, "64: 0=501 (name) 1=502 (name) ", 30),
			 0);
	assert_int_equal(strncmp(item("TSC offsets")->value, "0=-29000000000 1=-29000000000 ", 30),
			 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(libvirt_is_reached_or_not),
		TEST(a_domain_that_runs_is_found_with_its_process),
		TEST(a_domain_that_is_paused_is_a_warning),
		TEST(a_domain_that_is_off_blocks),
		TEST(a_domain_whose_process_is_elsewhere_blocks),
		TEST(a_machine_that_libvirt_does_not_know_is_found_too),
		TEST(what_an_agent_allows_is_told),
		TEST(an_agent_that_does_not_answer_is_a_warning),
		TEST(a_guest_that_hides_its_symbols_is_a_warning),
		TEST(an_emulator_blocks),
		TEST(what_runs_it_may_be_unknown),
		TEST(memory_that_is_hidden_is_a_warning),
		TEST(a_guest_by_its_process_needs_no_libvirt),
		TEST(the_clocks_of_vcpus_are_told),
		TEST(threads_that_are_missing_or_disputed_are_told),
		TEST(many_vcpus_are_cut),
		TEST(a_guest_that_is_not_there_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
