#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/check_host.h"
#include "tests/fake_tree.h"

enum { MSR_SIZE = 0x485 + 8 };

struct bench {
	struct fake_tree tree;
	struct check_list list;
};

static void set_cpu(const struct fake_tree *tree, const char *vendor, int family, int model)
{
	char text[300];

	(void)snprintf(text, sizeof(text),
		       "processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\n"
		       "model name\t: A CPU\nstepping\t: 3\nflags\t\t: fpu intel_pt\n\n"
		       "processor\t: 1\nvendor_id\t: other\n",
		       vendor, family, model);
	fake_tree_file(tree, text, "proc/cpuinfo");
}

static void set_msr(const struct fake_tree *tree, uint8_t second_byte)
{
	uint8_t msr[MSR_SIZE] = { 0 };

	msr[0x485 + 1] = second_byte;
	fake_tree_bytes(tree, msr, sizeof(msr), "dev/cpu/0/msr");
}

/* A host that meets every requirement. */
static int set_up(void **state)
{
	static struct bench bench;
	const struct fake_tree *tree = &bench.tree;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	set_cpu(tree, "GenuineIntel", 6, 0x9e);
	set_msr(tree, 0x40);
	fake_tree_file(tree, "8\n", "sys/bus/event_source/devices/intel_pt/type");
	fake_tree_file(tree, "1\n", "sys/bus/event_source/devices/intel_pt/caps/mtc");
	fake_tree_file(tree, "1\n", "sys/bus/event_source/devices/intel_pt/caps/psb_cyc");
	fake_tree_file(tree, "0\n", "sys/module/kvm_intel/parameters/pt_mode");
	fake_tree_file(tree, "Name:\tx\nCapEff:\t000001ffffffffff\n", "proc/self/status");
	fake_tree_file(tree, "Max locked memory         8388608    8388608   bytes\n",
		       "proc/self/limits");
	fake_tree_file(tree, "2\n", "proc/sys/kernel/perf_event_paranoid");
	fake_tree_file(tree, "516\n", "proc/sys/kernel/perf_event_mlock_kb");
	fake_tree_file(tree, "1\n", "proc/sys/kernel/kptr_restrict");
	fake_tree_file(tree, "ffffffff81000000 T _stext\n", "proc/kallsyms");
	fake_tree_file(tree, "", "proc/kcore");
	fake_tree_file(tree, "[none] integrity confidentiality\n", "sys/kernel/security/lockdown");
	fake_tree_file(tree, "0\n", "debugfs/kvm/1-2/vcpu0/tsc-offset");
	fake_tree_file(tree, "", "sys/kernel/tracing/events/kvm/kvm_entry/id");
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	fake_tree_deinit(&bench->tree);
	return 0;
}

static const struct check_item *item(const struct check_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].name, name))
			return &list->items[i];
	fail_msg("no item %s", name);
	return NULL;
}

static void look(struct bench *bench)
{
	memset(&bench->list, 0, sizeof(bench->list));
	check_host(&bench->tree.roots, "/", &bench->list);
}

static void assert_item(struct bench *bench, const char *name, enum check_verdict verdict,
			const char *value)
{
	const struct check_item *found;

	look(bench);
	found = item(&bench->list, name);
	assert_string_equal(check_verdict_text(found->verdict), check_verdict_text(verdict));
	assert_string_equal(found->value, value);
	if (verdict == CHECK_OK)
		assert_null(found->remedy);
	else
		assert_non_null(found->remedy);
}

static void a_host_that_has_all_is_ok(void **state)
{
	struct bench *bench = *state;

	look(bench);
	assert_int_equal(check_count(&bench->list, CHECK_BLOCKS), 0);
	/* Room on the disk is that of the machine that runs this. */
	for (size_t i = 0; i < bench->list.count - 1; i++)
		assert_int_equal(bench->list.items[i].verdict, CHECK_OK);
	assert_string_equal(item(&bench->list, "cpu")->value,
			    "A CPU, family 6 model 158 stepping 3");
	assert_string_equal(item(&bench->list, "intel_pt caps")->value, "psb_cyc=1 mtc=1");
}

static void a_host_that_has_nothing_gets_every_item(void **state)
{
	struct bench *bench = *state;
	const struct roots nowhere = { "/nonexistent", "/nonexistent", "/nonexistent",
				       "/nonexistent" };
	struct check_list list = { 0 };

	look(bench);
	check_host(&nowhere, "/nonexistent", &list);
	assert_int_equal(list.count, bench->list.count);
	for (size_t i = 0; i < list.count; i++)
		assert_string_equal(list.items[i].name, bench->list.items[i].name);
	assert_int_equal(item(&list, "cpu")->verdict, CHECK_BLOCKS);
	assert_int_equal(item(&list, "intel_pt")->verdict, CHECK_BLOCKS);
	assert_int_equal(item(&list, "kvm_intel")->verdict, CHECK_BLOCKS);
	assert_int_equal(item(&list, "perf_event_paranoid")->verdict, CHECK_BLOCKS);
	assert_int_equal(item(&list, "disk space")->verdict, CHECK_WARNING);
}

static void cpus_that_cannot_are_told(void **state)
{
	struct bench *bench = *state;

	set_cpu(&bench->tree, "AuthenticAMD", 25, 1);
	assert_item(bench, "cpu", CHECK_BLOCKS, "A CPU, family 25 model 1 stepping 3");
	set_cpu(&bench->tree, "GenuineIntel", 6, 0x4f);
	assert_item(bench, "cpu", CHECK_BLOCKS, "A CPU, family 6 model 79 stepping 3");
	set_cpu(&bench->tree, "GenuineIntel", 6, 0x55);
	assert_item(bench, "cpu", CHECK_WARNING, "A CPU, family 6 model 85 stepping 3");
	set_cpu(&bench->tree, "GenuineIntel", 19, 1);
	assert_item(bench, "cpu", CHECK_WARNING, "A CPU, family 19 model 1 stepping 3");
	set_msr(&bench->tree, 0);
	assert_item(bench, "VMX_MISC[14]", CHECK_BLOCKS, "clear, trace stops while KVM is in use");
}

static void a_pmu_without_clocks_is_a_warning(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "0\n", "sys/bus/event_source/devices/intel_pt/caps/psb_cyc");
	assert_item(bench, "intel_pt caps", CHECK_WARNING, "no psb_cyc; mtc=1");
	fake_tree_file(&bench->tree, "0\n", "sys/bus/event_source/devices/intel_pt/caps/mtc");
	assert_item(bench, "intel_pt caps", CHECK_WARNING, "no mtc;");
}

static void kvm_that_hides_guests_blocks(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "1\n", "sys/module/kvm_intel/parameters/pt_mode");
	assert_item(bench, "pt_mode", CHECK_BLOCKS,
		    "1, host-guest: the host sees nothing of guests");
}

static void a_newer_kvm_has_no_pt_mode(void **state)
{
	struct bench *bench = *state;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/module/kvm_intel/parameters/pt_mode",
		       bench->tree.sys);
	assert_int_equal(remove(path), 0);
	assert_item(bench, "pt_mode", CHECK_OK, "0, system");
}

static void without_rights_paranoia_counts(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "Name:\tx\nCapEff:\t0000000000000000\n", "proc/self/status");
	assert_item(bench, "capabilities", CHECK_WARNING,
		    "missing: CAP_PERFMON (trace of kernels), CAP_SYSLOG (kernel symbols), "
		    "CAP_SYS_RAWIO (kernel code), CAP_SYS_PTRACE (other users' guests)");
	assert_item(bench, "perf_event_paranoid", CHECK_BLOCKS, "2, kernels are not traced for us");
	fake_tree_file(&bench->tree, "1\n", "proc/sys/kernel/perf_event_paranoid");
	assert_item(bench, "perf_event_paranoid", CHECK_BLOCKS,
		    "1, what happens on whole CPUs is not for us");
	fake_tree_file(&bench->tree, "0\n", "proc/sys/kernel/perf_event_paranoid");
	assert_item(bench, "perf_event_paranoid", CHECK_WARNING, "0, buffers are small");
	fake_tree_file(&bench->tree, "-1\n", "proc/sys/kernel/perf_event_paranoid");
	assert_item(bench, "perf_event_paranoid", CHECK_OK, "-1");
}

static void administrators_may_trace(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "Name:\tx\nCapEff:\t0000000000200000\n", "proc/self/status");
	assert_item(bench, "perf_event_paranoid", CHECK_OK, "2, of no effect with CAP_PERFMON");
}

static void memory_that_may_not_be_locked_is_a_warning(void **state)
{
	struct bench *bench = *state;
	const struct check_item *found;

	fake_tree_file(&bench->tree, "Name:\tx\nCapEff:\t0000000000000000\n", "proc/self/status");
	fake_tree_file(&bench->tree, "Max locked memory         65536    65536   bytes\n",
		       "proc/self/limits");
	look(bench);
	found = item(&bench->list, "locked memory");
	assert_int_equal(found->verdict, CHECK_WARNING);
	fake_tree_file(&bench->tree, "Max locked memory  unlimited  unlimited bytes\n",
		       "proc/self/limits");
	look(bench);
	assert_int_equal(item(&bench->list, "locked memory")->verdict, CHECK_OK);
}

static void symbols_without_addresses_are_a_warning(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "2\n", "proc/sys/kernel/kptr_restrict");
	fake_tree_file(&bench->tree, "0000000000000000 T _stext\n", "proc/kallsyms");
	assert_item(bench, "kptr_restrict", CHECK_WARNING, "2, kernel symbols have no addresses");
}

static void data_of_a_cpu_at_zero_are_symbols_with_addresses(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree,
		       "0000000000000000 A fixed_percpu_data\n0000000000000000 A __per_cpu_start\n"
		       "0000000000001000 A cpu_debug_store\nffffffff81000000 T _text\n",
		       "proc/kallsyms");
	assert_item(bench, "kptr_restrict", CHECK_OK, "1, kernel symbols have addresses");
}

static void lockdown_is_a_warning(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "none integrity [confidentiality]\n",
		       "sys/kernel/security/lockdown");
	assert_item(bench, "lockdown", CHECK_WARNING, "confidentiality");
	fake_tree_file(&bench->tree, "none [integrity] confidentiality\n",
		       "sys/kernel/security/lockdown");
	assert_item(bench, "lockdown", CHECK_WARNING, "integrity");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_host_that_has_all_is_ok),
		TEST(a_host_that_has_nothing_gets_every_item),
		TEST(cpus_that_cannot_are_told),
		TEST(a_pmu_without_clocks_is_a_warning),
		TEST(kvm_that_hides_guests_blocks),
		TEST(a_newer_kvm_has_no_pt_mode),
		TEST(without_rights_paranoia_counts),
		TEST(administrators_may_trace),
		TEST(memory_that_may_not_be_locked_is_a_warning),
		TEST(symbols_without_addresses_are_a_warning),
		TEST(data_of_a_cpu_at_zero_are_symbols_with_addresses),
		TEST(lockdown_is_a_warning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
