/* sample_origin: which calls and branches led to a sample, told some time after it was taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/sample_origin.h"

/* The base of the kernel's addresses; tests add the last digits. */
#define KERNEL UINT64_C(0xffffffff81000000)

struct bench {
	struct call_stack stack;
	struct last_branches branches;
	struct text text;
};

static struct bench *bench_new(void)
{
	return test_calloc(1, sizeof(struct bench));
}

static void called(struct bench *bench, uint64_t return_ip)
{
	bench->stack.frames[bench->stack.depth++].return_ip = return_ip;
}

static void branched(struct bench *bench, uint64_t from, uint64_t to)
{
	last_branches_add(&bench->branches, 100, (struct branch_entry){ .from = from, .to = to });
}

static void add_words(char *words, struct bytes bytes, unsigned step)
{
	for (size_t at = 0; at + step <= bytes.size; at += step)
		(void)sprintf(words + strlen(words), "%llx ",
			      (unsigned long long)(load_le(bytes.data + at, 8) & ~KERNEL));
}

/* The calls, a bar, where the branches came from. */
static void tells(struct bench *bench, uint64_t ip, struct origin_limits limits,
		  const char *expected)
{
	struct sample_origin origin;
	char words[4096] = "";

	sample_origin_add(&bench->text, &limits, ip, &bench->stack, &bench->branches);
	origin = sample_origin_read(
		(struct bytes){ (const uint8_t *)bench->text.data, bench->text.size });
	add_words(words, origin.calls, 8);
	strcat(words, "| ");
	add_words(words, origin.branches, ORIGIN_BRANCH_BYTES);
	assert_string_equal(words, expected);
	last_branches_free(&bench->branches);
	text_free(&bench->text);
	test_free(bench);
}

static const struct origin_limits calls = { .calls = 16 }, branches = { .branches = 16 };

static void calls_since_the_sample_are_left_out(void **state)
{
	struct bench *bench = bench_new();

	called(bench, KERNEL + 0x10);
	called(bench, KERNEL + 0x20);
	called(bench, KERNEL + 0x30);
	called(bench, KERNEL + 0x40);
	tells(bench, KERNEL + 0x30, calls, "30 20 10 | ");
}

static void a_place_that_nothing_returns_to_was_called_from_user_code(void **state)
{
	struct bench *bench = bench_new();

	called(bench, 0x7000);
	called(bench, 0x8000);
	called(bench, KERNEL + 0x10);
	tells(bench, KERNEL + 0x99, calls, "8000 7000 | ");
	bench = bench_new();
	called(bench, KERNEL + 0x10);
	tells(bench, KERNEL + 0x99, calls, "| ");
}

static void a_change_of_side_counts_as_a_call(void **state)
{
	for (unsigned most = 1; most < 5; most++) {
		static const char *const expected[] = { "", "10 | ", "10 | ", "10 7000 | ",
							"10 7000 6000 | " };
		struct bench *bench = bench_new();

		called(bench, 0x6000);
		called(bench, 0x7000);
		called(bench, KERNEL + 0x10);
		tells(bench, KERNEL + 0x10, (struct origin_limits){ .calls = most },
		      expected[most]);
	}
}

static void branches_since_the_sample_are_left_out(void **state)
{
	struct bench *bench = bench_new();

	branched(bench, KERNEL + 0x10, KERNEL + 0x100);
	branched(bench, KERNEL + 0x110, KERNEL + 0x200); /* the sample is at 204 */
	branched(bench, KERNEL + 0x208, KERNEL + 0x300);
	branched(bench, KERNEL + 0x310, KERNEL + 0x400);
	tells(bench, KERNEL + 0x204, branches, "| 110 10 ");
}

static void of_a_place_in_the_kernel_that_none_went_by_user_code_is_shown(void **state)
{
	struct bench *bench = bench_new();

	branched(bench, 0x7000, 0x7100);
	branched(bench, 0x7110, KERNEL + 0x200);
	branched(bench, KERNEL + 0x208, KERNEL + 0x300);
	tells(bench, KERNEL + 0x999, branches, "| 7110 7000 ");
}

static void of_user_code_the_kernel_since_is_left_out(void **state)
{
	struct bench *bench = bench_new();

	branched(bench, 0x6000, 0x7100);
	branched(bench, 0x7110, KERNEL + 0x200);
	branched(bench, KERNEL + 0x208, KERNEL + 0x300);
	tells(bench, 0x7108, branches, "| 6000 ");
}

static void as_many_branches_as_asked_for(void **state)
{
	struct bench *bench = bench_new();

	for (unsigned i = 1; i < 9; i++)
		branched(bench, 0x1000 * i, 0x1000 * i + 0x800);
	tells(bench, 0x1000, (struct origin_limits){ .branches = 3 }, "| 8000 7000 6000 ");
}

static void sides_of_branches_are_told(void **state)
{
	const struct branch_entry entry = { .from = 1, .to = 2, .flags = 3, .to_guest = true };
	struct last_branches one = { 0 };
	struct text text = { 0 };
	struct sample_origin origin;

	last_branches_add(&one, 1, entry);
	sample_origin_add(&text, &branches, 2, NULL, &one);
	origin = sample_origin_read((struct bytes){ (const uint8_t *)text.data, text.size });
	assert_int_equal(origin.calls.size, 0);
	assert_int_equal(origin.branches.size, ORIGIN_BRANCH_BYTES);
	assert_int_equal(load_le(origin.branches.data + 16, 8), 3 | ORIGIN_TO_GUEST);
	last_branches_free(&one);
	text_free(&text);
}

static void where_nothing_is_known_nothing_is_told(void **state)
{
	const struct origin_limits both = { 16, 16 };
	struct text text = { 0 };

	text_puts(&text, "before");
	sample_origin_add(&text, &both, 1, NULL, NULL);
	assert_int_equal(text.size, 6);
	text_free(&text);
}

static void what_is_cut_off_is_not_read(void **state)
{
	const uint8_t bytes[20] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 };

	for (size_t size = 0; size <= sizeof(bytes); size++) {
		struct sample_origin origin = sample_origin_read((struct bytes){ bytes, size });

		assert_int_equal(origin.calls.size, size > 8 ? size - 8 : 0);
		assert_true(origin.branches.size <= size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_since_the_sample_are_left_out),
		cmocka_unit_test(a_place_that_nothing_returns_to_was_called_from_user_code),
		cmocka_unit_test(a_change_of_side_counts_as_a_call),
		cmocka_unit_test(branches_since_the_sample_are_left_out),
		cmocka_unit_test(of_a_place_in_the_kernel_that_none_went_by_user_code_is_shown),
		cmocka_unit_test(of_user_code_the_kernel_since_is_left_out),
		cmocka_unit_test(as_many_branches_as_asked_for),
		cmocka_unit_test(sides_of_branches_are_told),
		cmocka_unit_test(where_nothing_is_known_nothing_is_told),
		cmocka_unit_test(what_is_cut_off_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
