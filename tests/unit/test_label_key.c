#include "decode/code/label_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { KEY = 0x1000, OTHER = 0x2000, LONELY = 0x3000 };

/* A label that is a NOP, one that is a jump, one that the copy does not have, and other keys'. */
static struct label_entry items[] = {
	{ .site = 0x10, .target = 0x80, .key = KEY, .next = 2, .size = 2 },
	{ .site = 0x20, .target = 0x90, .key = OTHER, .next = 5, .size = 2 },
	{ .site = 0x30, .target = 0xa0, .key = KEY, .next = 4, .size = 5, .is_jump = true },
	{ .site = 0x40, .target = 0xb0, .key = LONELY, .next = 3, .size = 2 },
	{ .site = 0x50, .target = 0xc0, .key = KEY, .next = 0 },
	{ .site = 0x60, .target = 0xd0, .key = OTHER, .next = 1, .size = 2 },
};
static const struct label_table table = { .items = items, .count = 6, .to = 0x100 };

static void a_key_is_found_by_each_of_its_labels(void **state)
{
	struct label_key by_first, by_last;

	assert_true(label_key_find(&table, 0x10, &by_first));
	assert_true(label_key_find(&table, 0x30, &by_last));
	assert_true(label_key_is_same(&by_first, &by_last));
	assert_int_equal(by_last.first, 0);
	assert_true(label_key_find(&table, 0x60, &by_last));
	assert_int_equal(by_last.first, 1);
	assert_false(label_key_is_same(&by_first, &by_last));
	assert_false(label_key_find(&table, 0x50, &by_last));
	assert_false(label_key_find(&table, 0x11, &by_last));
}

static void a_label_alone_has_no_key(void **state)
{
	struct label_key key;

	assert_false(label_key_find(&table, 0x40, &key));
}

static void all_labels_take_their_other_form(void **state)
{
	struct patched_insn insn;
	struct label_key key;

	assert_true(label_key_find(&table, 0x10, &key));
	assert_true(label_key_has(&key, 0x10) && label_key_has(&key, 0x30));
	assert_false(label_key_has(&key, 0x20) || label_key_has(&key, 0x50));
	assert_true(label_key_insn(&key, 0x10, &insn));
	assert_int_equal(insn.to, 0x80);
	assert_int_equal(insn.size, 2);
	assert_true(label_key_insn(&key, 0x30, &insn));
	assert_int_equal(insn.to, 0x35);
	assert_int_equal(insn.size, 5);
	assert_false(label_key_insn(&key, 0x20, &insn));
}

static void they_may_be_as_copied_again(void **state)
{
	struct label_key key, again;
	struct patched_insn insn;

	assert_true(label_key_find(&table, 0x10, &key));
	again = key;
	again.is_as_copied = true;
	assert_false(label_key_is_same(&key, &again));
	assert_true(label_key_has(&again, 0x10));
	assert_false(label_key_insn(&again, 0x10, &insn));
}

static void each_label_comes_once(void **state)
{
	static const uint32_t order[] = { 0, 2, 4, LABEL_KEY_END };
	struct label_key key;
	uint32_t at;

	assert_true(label_key_find(&table, 0x30, &key));
	at = key.first;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(at, order[i]);
		if (at != LABEL_KEY_END)
			at = label_key_next(&key, at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_found_by_each_of_its_labels),
		cmocka_unit_test(a_label_alone_has_no_key),
		cmocka_unit_test(all_labels_take_their_other_form),
		cmocka_unit_test(they_may_be_as_copied_again),
		cmocka_unit_test(each_label_comes_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
