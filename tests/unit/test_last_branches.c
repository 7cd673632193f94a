#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/print/last_branches.h"

static void the_newest_push_out_the_oldest(void **state)
{
	struct last_branches branches = { 0 };

	for (uint64_t i = 1; i <= 5; i++) {
		last_branches_add(&branches, 3, (struct branch_entry){ .from = i, .to = 10 * i });
		assert_int_equal(branches.count, i < 3 ? i : 3);
		for (unsigned back = 0; back < branches.count; back++)
			assert_int_equal(last_branch(&branches, back)->from, i - back);
	}
	last_branches_free(&branches);
	last_branches_free(&branches);
}

static void what_was_forgotten_does_not_come_back(void **state)
{
	struct last_branches branches = { 0 };

	for (uint64_t i = 1; i <= 4; i++)
		last_branches_add(&branches, 3, (struct branch_entry){ .from = i });
	branches.count = 0;
	last_branches_add(&branches, 3, (struct branch_entry){ .from = 9 });
	assert_int_equal(branches.count, 1);
	assert_int_equal(last_branch(&branches, 0)->from, 9);
	last_branches_free(&branches);
}

static void reads(const struct branch_entry *entry, const char *const *dsos, const char *expected)
{
	struct text text = { 0 };

	branch_entry_text(&text, entry, dsos);
	text_putc(&text, 0);
	assert_string_equal(text.data, expected);
	text_free(&text);
}

static void a_branch_reads_as_perf_has_it(void **state)
{
	const char *const dsos[] = { "libc.so", NULL };
	struct branch_entry entry = { .from = 0x1234, .to = 0xffffffff81000000 };

	reads(&entry, NULL, " 0x1234/0xffffffff81000000/-/-/-/0/ ");
	reads(&entry, dsos, " 0x1234(libc.so)/0xffffffff81000000([unknown])/-/-/-/0/ ");
	entry.flags = BRANCH_ENTRY_MISSED | BRANCH_ENTRY_IN_TX | 12 << 4;
	reads(&entry, NULL, " 0x1234/0xffffffff81000000/M/X/-/12/ ");
	entry.flags = BRANCH_ENTRY_PREDICTED | BRANCH_ENTRY_ABORT;
	reads(&entry, NULL, " 0x1234/0xffffffff81000000/P/-/A/0/ ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_push_out_the_oldest),
		cmocka_unit_test(what_was_forgotten_does_not_come_back),
		cmocka_unit_test(a_branch_reads_as_perf_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
