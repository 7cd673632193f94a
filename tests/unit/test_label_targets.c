#include "decode/code/label_targets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"

/* A function with a label; each test adds its own code. */

static const uint64_t base = 0xffffffff81000000;

enum { SIZE = 0x80, LABEL = 0x10, NEXT = LABEL + 5, APART = 0x40 };

struct fixture {
	uint8_t code[SIZE];
	struct machines machines;
};

static void put(struct fixture *fixture, size_t at, const void *bytes, size_t size)
{
	memcpy(fixture->code + at, bytes, size);
}

static void put_jump(struct fixture *fixture, size_t at, size_t to)
{
	const uint8_t jump[] = { 0xe9, (uint8_t)(to - at - 5), to < at + 5 ? 0xff : 0,
				 to < at + 5 ? 0xff : 0, to < at + 5 ? 0xff : 0 };

	put(fixture, at, jump, sizeof(jump));
}

/* xor; xor; ...; the label as a NOP; xor; ret, and from APART on: xor; jmp NEXT */
static void make(struct fixture *fixture)
{
	for (size_t at = 0; at < SIZE; at += 2)
		put(fixture, at, "\x31\xc0", 2);
	put(fixture, LABEL, "\x0f\x1f\x44\0\0", 5);
	put(fixture, NEXT, "\x31\xc0\xc3", 3);
	memset(fixture->code + NEXT + 3, 0xcc, APART - NEXT - 3);
	put_jump(fixture, APART + 2, NEXT);
	memset(fixture->code + APART + 7, 0xcc, SIZE - APART - 7);
}

static void load(struct fixture *fixture, uint64_t function)
{
	assert_true(bench_machines_new(&fixture->machines));
	assert_true(bench_add_code(fixture->machines.host, base, fixture->code, SIZE));
	if (function)
		assert_true(bench_add_function(fixture->machines.host, function));
}

static struct label_targets find(struct fixture *fixture, size_t at)
{
	struct label_targets ret;
	struct insn insn;

	assert_int_equal(insn_read(fixture->code + at, SIZE - at, base + at, 64, &insn), 0);
	assert_true(label_targets_is_label(&insn));
	label_targets_find(fixture->machines.host, &insn, 0, &ret);
	machines_free(&fixture->machines);
	return ret;
}

static void a_nop_leads_to_what_nothing_else_reaches(void **state)
{
	struct label_targets targets;
	struct fixture fixture;

	make(&fixture);
	load(&fixture, base);
	targets = find(&fixture, LABEL);
	assert_int_equal(targets.items[0], base + APART);
	assert_int_equal(targets.back_count, 1);
	assert_int_equal(targets.dead_count, 1);
}

/* Code may come back behind what follows the label, or to where a jump leads that does. */
static void what_leads_right_behind_the_label_is_told(void **state)
{
	struct label_targets targets;
	struct fixture fixture;

	make(&fixture);
	load(&fixture, base);
	assert_int_equal(find(&fixture, LABEL).exact_count, 1);
	make(&fixture);
	put_jump(&fixture, APART + 2, NEXT + 2);
	load(&fixture, base);
	targets = find(&fixture, LABEL);
	assert_int_equal(targets.exact_count, 0);
	assert_int_equal(targets.back_count, 1);
	make(&fixture);
	put_jump(&fixture, NEXT, 0);
	put_jump(&fixture, APART + 2, 0);
	load(&fixture, base);
	targets = find(&fixture, LABEL);
	assert_int_equal(targets.items[0], base + APART);
	assert_int_equal(targets.exact_count, 0);
	assert_int_equal(targets.back_count, 1);
}

static void what_a_branch_reaches_is_less_likely(void **state)
{
	struct label_targets targets;
	struct fixture fixture;

	make(&fixture);
	put(&fixture, 0, "\x74\x3e", 2); /* je APART */
	load(&fixture, base);
	targets = find(&fixture, LABEL);
	assert_int_equal(targets.dead_count, 0);
	assert_true(targets.count > 0);
}

static void where_functions_begin_there_are_no_labels(void **state)
{
	struct fixture fixture;

	make(&fixture);
	load(&fixture, base + LABEL);
	assert_int_equal(find(&fixture, LABEL).count, 0);
	make(&fixture);
	load(&fixture, base + LABEL - 4); /* endbr64 */
	assert_int_equal(find(&fixture, LABEL).count, 0);
}

static void without_names_nothing_is_guessed(void **state)
{
	struct fixture fixture;

	make(&fixture);
	load(&fixture, 0);
	assert_int_equal(find(&fixture, LABEL).count, 0);
}

static void a_jump_that_hides_code_may_be_a_nop(void **state)
{
	struct label_targets targets;
	struct fixture fixture;

	make(&fixture);
	put_jump(&fixture, LABEL, APART);
	load(&fixture, base);
	targets = find(&fixture, LABEL);
	assert_int_equal(targets.count, 1);
	assert_int_equal(targets.items[0], base + NEXT);
}

/* As a compiler makes `if` and `else`: both ways are reached from elsewhere, too. */
static void an_ordinary_jump_is_none(void **state)
{
	struct fixture fixture;

	make(&fixture);
	put_jump(&fixture, LABEL, NEXT + 2);
	put(&fixture, 0, "\x74\x13", 2); /* je NEXT */
	load(&fixture, base);
	assert_int_equal(find(&fixture, LABEL).count, 0);
}

/* The table gives the label a target that is no code, and has no other labels. */
static void the_kernels_table_is_asked_first(void **state)
{
	const uint64_t table = base + 0x1000;
	const int32_t entry[] = { (int32_t)(base + LABEL - table),
				  (int32_t)(base + 0x30 - table - 4), 0, 0 };
	const struct symbol symbols[] = { { .start = base, .name = "_stext" },
					  { .start = base + SIZE, .name = "_etext" },
					  { .start = table, .name = "__start___jump_table" },
					  { .start = table + sizeof(entry),
					    .name = "__stop___jump_table" } };
	struct label_targets targets;
	struct fixture fixture;

	for (size_t at = LABEL; at <= APART + 2; at += APART + 2 - LABEL) {
		make(&fixture);
		load(&fixture, 0);
		for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
			assert_int_equal(symbols_add(&fixture.machines.host->symbols, &symbols[i]),
					 0);
		assert_int_equal(symbols_finish(&fixture.machines.host->symbols, true), 0);
		assert_true(bench_add_code(fixture.machines.host, table, entry, sizeof(entry)));
		targets = find(&fixture, at);
		assert_int_equal(targets.count, at == LABEL);
		assert_int_equal(targets.back_count, at == LABEL);
		assert_int_equal(targets.items[0], at == LABEL ? base + 0x30 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nop_leads_to_what_nothing_else_reaches),
		cmocka_unit_test(what_leads_right_behind_the_label_is_told),
		cmocka_unit_test(what_a_branch_reaches_is_less_likely),
		cmocka_unit_test(where_functions_begin_there_are_no_labels),
		cmocka_unit_test(without_names_nothing_is_guessed),
		cmocka_unit_test(a_jump_that_hides_code_may_be_a_nop),
		cmocka_unit_test(an_ordinary_jump_is_none),
		cmocka_unit_test(the_kernels_table_is_asked_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
