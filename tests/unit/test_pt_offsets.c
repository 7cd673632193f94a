#include "decode/pt/pt_offsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void an_offset_is_found_by_its_vmcs_only(void **state)
{
	struct pt_offsets offsets = { .count = 0 };
	uint64_t found;

	assert_false(pt_offsets_find(&offsets, 1, &found));
	pt_offsets_set(&offsets, 1, 100);
	pt_offsets_set(&offsets, 2, 0);
	assert_true(pt_offsets_find(&offsets, 1, &found));
	assert_int_equal(found, 100);
	assert_true(pt_offsets_find(&offsets, 2, &found));
	assert_int_equal(found, 0);
	assert_false(pt_offsets_find(&offsets, 3, &found));
}

static void a_later_offset_replaces_the_earlier(void **state)
{
	struct pt_offsets offsets = { .count = 0 };
	uint64_t found;

	pt_offsets_set(&offsets, 1, 100);
	pt_offsets_set(&offsets, 1, 200);
	assert_int_equal(offsets.count, 1);
	assert_true(pt_offsets_find(&offsets, 1, &found));
	assert_int_equal(found, 200);
}

static void a_full_table_forgets_the_oldest(void **state)
{
	struct pt_offsets offsets = { .count = 0 };
	uint64_t found;

	for (uint64_t vmcs = 0; vmcs <= PT_OFFSETS_MAX; vmcs++)
		pt_offsets_set(&offsets, vmcs, vmcs * 10);
	assert_int_equal(offsets.count, PT_OFFSETS_MAX);
	assert_false(pt_offsets_find(&offsets, 0, &found));
	for (uint64_t vmcs = 1; vmcs <= PT_OFFSETS_MAX; vmcs++) {
		assert_true(pt_offsets_find(&offsets, vmcs, &found));
		assert_int_equal(found, vmcs * 10);
	}
}

static void a_full_table_still_replaces(void **state)
{
	struct pt_offsets offsets = { .count = 0 };
	uint64_t found;

	for (uint64_t vmcs = 0; vmcs < PT_OFFSETS_MAX; vmcs++)
		pt_offsets_set(&offsets, vmcs, vmcs);
	pt_offsets_set(&offsets, PT_OFFSETS_MAX - 1, 77);
	assert_true(pt_offsets_find(&offsets, 0, &found));
	assert_true(pt_offsets_find(&offsets, PT_OFFSETS_MAX - 1, &found));
	assert_int_equal(found, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_offset_is_found_by_its_vmcs_only),
		cmocka_unit_test(a_later_offset_replaces_the_earlier),
		cmocka_unit_test(a_full_table_forgets_the_oldest),
		cmocka_unit_test(a_full_table_still_replaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
