#include "decode/flow/stretch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/flow_bench.h"

/* A function that is called, and decides something before it returns:
 *	1000 call 1010; 1005 je 1000; 1007 ret
 *	1010 je 1013; 1012 nop; 1013 ret */
enum { BASE = 0x1000, BEHIND = BASE + 5, NOP = BASE + 0x12, LAST = BASE + 0x13 };

static const uint8_t bytes[0x14] = {
	[0x00] = 0xe8, 0x0b, 0, 0, 0, 0x74, 0xf9, 0xc3, [0x10] = 0x74, 0x01, 0x90, 0xc3,
};

/* Bits of a TNT packet. */
enum { TAKEN = 6, TAKEN_TAKEN_TAKEN = 30, NOT_TAKEN = 4 };

struct fixture {
	struct machines machines;
	struct code code;
	struct block *first, *behind;
};

static struct block *block_at(struct fixture *fixture, uint64_t ip)
{
	struct code_space *space =
		code_space_get(&fixture->code, fixture->machines.host, 0, ip, 64);

	return block_get(&fixture->code, space, ip, 0);
}

static int set_up(void **state)
{
	static struct fixture fixture;

	assert_true(bench_machines_new(&fixture.machines));
	assert_true(bench_add_code(fixture.machines.host, BASE, bytes, sizeof(bytes)));
	code_init(&fixture.code, &fixture.machines);
	assert_true(stretch_table(&fixture.code));
	fixture.first = block_at(&fixture, BASE);
	fixture.behind = block_at(&fixture, BEHIND);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	code_free(&fixture->code);
	machines_free(&fixture->machines);
	return 0;
}

static void what_is_not_linked_is_not_remembered(void **state)
{
	struct fixture *fixture = *state;
	const struct stretch *stretch;

	assert_null(stretch_add(&fixture->code, fixture->first, TAKEN));
	fixture->first->successor[1] = block_at(fixture, LAST);
	stretch = stretch_add(&fixture->code, fixture->first, TAKEN);
	assert_non_null(stretch);
	assert_int_equal(stretch->rest, STRETCH_NO_BITS);
	assert_int_equal(stretch->insns, 2);
	assert_ptr_equal(stretch->to, block_at(fixture, LAST));
	assert_int_equal(stretch->push_count, 1);
	assert_int_equal(stretch->pushes[0], BEHIND);
}

static void what_is_asked_for_twice_is_remembered(void **state)
{
	struct fixture *fixture = *state;
	const struct stretch *stretch;

	fixture->first->successor[1] = block_at(fixture, LAST);
	assert_null(stretch_get(&fixture->code, fixture->first, TAKEN));
	stretch = stretch_get(&fixture->code, fixture->first, TAKEN);
	assert_non_null(stretch);
	assert_int_equal(stretch->key, stretch_key(fixture->first, TAKEN));
	assert_ptr_equal(stretch, stretch_get(&fixture->code, fixture->first, TAKEN));
}

static void a_return_belongs_to_it_if_its_call_does(void **state)
{
	struct fixture *fixture = *state;
	struct block *last = block_at(fixture, LAST);
	const struct stretch *stretch;

	fixture->first->successor[1] = last;
	fixture->behind->successor[1] = fixture->first;
	stretch = stretch_add(&fixture->code, fixture->first, TAKEN_TAKEN_TAKEN);
	assert_int_equal(stretch->rest, STRETCH_NO_BITS);
	assert_int_equal(stretch->insns, 4); /* call, je, ret, je */
	assert_ptr_equal(stretch->to, fixture->first);
	assert_int_equal(stretch->push_count, 0);
	assert_int_equal(stretch->depth, 1);
	assert_true(stretch->returns);
	stretch = stretch_add(&fixture->code, last, TAKEN);
	assert_int_equal(stretch->rest, TAKEN);
	assert_false(stretch->returns);
}

static void a_return_that_is_not_taken_is_none(void **state)
{
	struct fixture *fixture = *state;
	const uint8_t taken_not = TAKEN << 1; /* the older bit is taken */

	fixture->first->successor[1] = block_at(fixture, LAST);
	assert_int_equal(stretch_add(&fixture->code, fixture->first, taken_not)->rest, NOT_TAKEN);
}

static void too_many_calls_end_it(void **state)
{
	struct fixture *fixture = *state;
	const uint8_t bits = 1 << 6; /* five times not taken */
	const struct stretch *stretch;

	fixture->first->successor[0] = fixture->first;
	stretch = stretch_add(&fixture->code, fixture->first, bits);
	assert_int_equal(stretch->push_count, STRETCH_PUSHES);
	assert_int_equal(stretch->rest, NOT_TAKEN);
	assert_int_equal(stretch->insns, 2 * STRETCH_PUSHES);
}

static void a_changed_jump_label_makes_all_be_forgotten(void **state)
{
	struct fixture *fixture = *state;
	uint64_t key = stretch_key(fixture->first, NOT_TAKEN);

	fixture->first->successor[0] = block_at(fixture, NOP);
	assert_int_equal(stretch_add(&fixture->code, fixture->first, NOT_TAKEN)->rest,
			 STRETCH_NO_BITS);
	assert_int_equal(stretch_slot(&fixture->code, key)->key, key);
	code_add_sites(&fixture->code, &(struct code_site){ fixture->machines.host, NOP }, 1);
	assert_int_equal(stretch_slot(&fixture->code, key)->key, 0);
}

static void bits_are_taken_oldest_first(void **state)
{
	assert_true(stretch_first_bit(TAKEN));
	assert_false(stretch_first_bit(NOT_TAKEN));
	assert_true(stretch_first_bit(TAKEN << 1));
	assert_int_equal(stretch_drop_bit(TAKEN << 1), NOT_TAKEN);
	assert_int_equal(stretch_drop_bit(TAKEN), STRETCH_NO_BITS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_not_linked_is_not_remembered, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_asked_for_twice_is_remembered, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_return_belongs_to_it_if_its_call_does, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_return_that_is_not_taken_is_none, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(too_many_calls_end_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_changed_jump_label_makes_all_be_forgotten, set_up,
						tear_down),
		cmocka_unit_test(bits_are_taken_oldest_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
