#include "host/machine/rights.h"

#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/tree_fixture.h"

/* Those in effect, not those that we might have. */
static void capabilities_in_effect_are_read(void **state)
{
	struct rights rights;

	fake_tree_file(&tree,
		       "Name:\tCapEff:\nCapPrm:\t000001ffffffffff\n"
		       "CapEff:\t8000000400000002\nCapBnd:\t000001ffffffffff\n",
		       "proc/self/status");
	rights_read(&tree.roots, &rights);
	assert_int_equal(rights.capabilities, 0x8000000400000002);
}

static void unknown_rights_are_none(void **state)
{
	struct rights rights = { .capabilities = 1 };

	rights_read(&tree.roots, &rights);
	assert_int_equal(rights.capabilities, 0);
	rights.capabilities = 1;
	fake_tree_file(&tree, "Name:\tx\n", "proc/self/status");
	rights_read(&tree.roots, &rights);
	assert_int_equal(rights.capabilities, 0);
}

static void each_capability_has_its_bit(void **state)
{
	const struct rights rights = { (uint64_t)1 << CAP_SYSLOG | 1 };

	assert_true(rights_has(&rights, CAP_SYSLOG));
	assert_true(rights_has(&rights, CAP_CHOWN));
	assert_false(rights_has(&rights, CAP_SYSLOG + 1));
	assert_false(rights_has(&rights, CAP_SYSLOG - 1));
}

static void administrators_may_trace(void **state)
{
	const struct rights administrator = { (uint64_t)1 << CAP_SYS_ADMIN };
	const struct rights tracer = { (uint64_t)1 << CAP_PERFMON };

	assert_true(rights_has(&administrator, CAP_PERFMON));
	assert_false(rights_has(&administrator, CAP_SYSLOG));
	assert_true(rights_has(&tracer, CAP_PERFMON));
	assert_false(rights_has(&tracer, CAP_SYS_ADMIN));
}

static void memory_is_free_to_some(void **state)
{
	const struct rights none = { 0 }, locker = { (uint64_t)1 << CAP_IPC_LOCK };

	assert_false(rights_lock_freely(&none, &tree.roots));
	assert_true(rights_lock_freely(&locker, &tree.roots));
	fake_tree_file(&tree, "0\n", "proc/sys/kernel/perf_event_paranoid");
	assert_false(rights_lock_freely(&none, &tree.roots));
	fake_tree_file(&tree, "-1\n", "proc/sys/kernel/perf_event_paranoid");
	assert_true(rights_lock_freely(&none, &tree.roots));
}

static void assert_limit(const char *limits, int64_t expected)
{
	fake_tree_file(&tree, limits, "proc/self/limits");
	assert_int_equal(rights_memlock_kib(&tree.roots), expected);
}

static void the_soft_limit_of_memory_counts(void **state)
{
	assert_limit("Limit                     Soft Limit           Hard Limit           Units\n"
		     "Max open files            1024                 4096                 files\n"
		     "Max locked memory         65536                8388608              bytes\n"
		     "Max address space         unlimited            unlimited            bytes\n",
		     64);
	assert_limit("Max locked memory         1023                 8388608              bytes\n",
		     0);
}

static void no_limit_is_a_large_one(void **state)
{
	fake_tree_file(&tree, "Max locked memory  unlimited  unlimited  bytes\n",
		       "proc/self/limits");
	assert_true(rights_memlock_kib(&tree.roots) >= (int64_t)1 << 40);
}

static void an_unknown_limit_is_nothing(void **state)
{
	assert_int_equal(rights_memlock_kib(&tree.roots), 0);
	assert_limit("Max open files 1024 4096 files\n", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(capabilities_in_effect_are_read),
		TEST(unknown_rights_are_none),
		cmocka_unit_test(each_capability_has_its_bit),
		cmocka_unit_test(administrators_may_trace),
		TEST(memory_is_free_to_some),
		TEST(the_soft_limit_of_memory_counts),
		TEST(no_limit_is_a_large_one),
		TEST(an_unknown_limit_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
