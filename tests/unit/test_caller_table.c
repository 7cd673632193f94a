#include "decode/code/caller_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

enum {
	FUNCTION = 0x20, /* from one to the next */
	FUNCTIONS = 8,
	SIZE = FUNCTION * FUNCTIONS,
	CALL = 0xe8,
	JMP = 0xe9,
	BRANCH_SIZE = 5,
	ENDBR_SIZE = 4,
	ROOM = 4,
};

static const uint64_t base = 0xffffffff81000000;

/* Functions at equal distances, with nothing but INT3s at first. */
struct fixture {
	uint8_t code[SIZE];
	struct image image;
	struct symbols symbols;
	struct caller_table table;
	uint64_t places[ROOM];
};

static uint64_t function(unsigned index)
{
	return base + index * FUNCTION;
}

static void add_symbol(struct fixture *f, uint64_t start, uint64_t end)
{
	const struct symbol symbol = { .start = start, .end = end, .name = "function" };

	assert_int_equal(symbols_add(&f->symbols, &symbol), 0);
}

static void make(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	memset(f->code, 0xcc, SIZE);
	assert_int_equal(image_add(&f->image, base, f->code, SIZE), 0);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		add_symbol(f, function(i), function(i + 1));
}

static void put(struct fixture *f, uint64_t ip, uint8_t opcode, uint64_t to)
{
	uint32_t distance = (uint32_t)(to - (ip + BRANCH_SIZE));

	f->code[ip - base] = opcode;
	memcpy(f->code + (ip - base) + 1, &distance, sizeof(distance));
}

static void read(struct fixture *f)
{
	assert_int_equal(symbols_finish(&f->symbols, true), 0);
	assert_int_equal(caller_table_read(&f->symbols, &f->image, &f->table), 0);
}

static unsigned find(struct fixture *f, unsigned index, unsigned room)
{
	return caller_table_find(&f->table, function(index), f->places, room);
}

static void done(struct fixture *f)
{
	caller_table_free(&f->table);
	symbols_free(&f->symbols);
	image_free(&f->image);
}

static void a_function_returns_behind_each_call_of_it(void **state)
{
	struct fixture f;

	make(&f);
	put(&f, function(0), CALL, function(2));
	put(&f, function(0) + BRANCH_SIZE, CALL, function(1));
	put(&f, function(3) + 1, CALL, function(2));
	read(&f);
	assert_int_equal(find(&f, 2, ROOM), 2);
	assert_int_equal(f.places[0], function(0) + BRANCH_SIZE);
	assert_int_equal(f.places[1], function(3) + 1 + BRANCH_SIZE);
	assert_int_equal(find(&f, 3, ROOM), 0);
	done(&f);
}

static void it_may_be_called_behind_its_endbr(void **state)
{
	struct fixture f;

	make(&f);
	put(&f, function(0), CALL, function(2) + ENDBR_SIZE);
	put(&f, function(1), CALL, function(2) + ENDBR_SIZE + 1);
	read(&f);
	assert_int_equal(find(&f, 2, ROOM), 1);
	assert_int_equal(f.places[0], function(0) + BRANCH_SIZE);
	done(&f);
}

static void what_jumps_to_it_is_called_for_it(void **state)
{
	struct fixture f;

	make(&f);
	put(&f, function(0), CALL, function(1));
	put(&f, function(1) + 1, JMP, function(2));
	put(&f, function(2), JMP, function(3));
	put(&f, function(4), JMP, function(3) + FUNCTION / 2);
	put(&f, function(5), CALL, function(4));
	read(&f);
	assert_int_equal(find(&f, 3, ROOM), 1);
	assert_int_equal(f.places[0], function(0) + BRANCH_SIZE);
	done(&f);
}

static void functions_that_jump_to_each_other_are_looked_at_once(void **state)
{
	struct fixture f;

	make(&f);
	put(&f, function(0), JMP, function(1));
	put(&f, function(1), JMP, function(0));
	put(&f, function(2), CALL, function(0));
	read(&f);
	assert_int_equal(find(&f, 1, ROOM), 1);
	assert_int_equal(f.places[0], function(2) + BRANCH_SIZE);
	done(&f);
}

static void too_many_places_are_none(void **state)
{
	struct fixture f;

	make(&f);
	for (unsigned i = 1; i <= ROOM; i++)
		put(&f, function(i), CALL, function(0));
	read(&f);
	assert_int_equal(find(&f, 0, ROOM), ROOM);
	assert_int_equal(find(&f, 0, ROOM - 1), ROOM);
	done(&f);
}

/* 20 functions, of which each jumps to the next. */
static void nor_is_it_looked_through_many_jumps(void **state)
{
	enum { JUMPS = 20, SPACE = 8 };
	struct fixture f;

	make(&f);
	f.symbols.count = 0;
	for (unsigned i = 0; i < JUMPS; i++) {
		add_symbol(&f, base + i * SPACE, base + (i + 1) * SPACE);
		put(&f, base + i * SPACE, JMP, base + (i + 1) * SPACE);
	}
	read(&f);
	assert_int_equal(caller_table_find(&f.table, base + 2 * SPACE, f.places, ROOM), 0);
	assert_int_equal(caller_table_find(&f.table, base + JUMPS * SPACE, f.places, ROOM),
			 ROOM + 1);
	done(&f);
}

static void other_bytes_are_no_calls(void **state)
{
	struct fixture f;

	make(&f);
	put(&f, function(0), CALL, base + SIZE);
	put(&f, function(1), CALL, base - 1);
	put(&f, function(2), JMP, function(2) + 1);
	f.code[SIZE - 2] = CALL;
	read(&f);
	assert_int_equal(f.table.count, 0);
	done(&f);
}

static void nothing_is_read_twice(void **state)
{
	struct fixture f;

	make(&f);
	put(&f, function(3), CALL, function(1));
	add_symbol(&f, function(0) + 1, UINT64_MAX);
	add_symbol(&f, function(1) + 1, UINT64_MAX);
	add_symbol(&f, base + SIZE, UINT64_MAX);
	add_symbol(&f, 0x1000, 0x2000);
	read(&f);
	assert_int_equal(f.table.count, 1);
	done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_returns_behind_each_call_of_it),
		cmocka_unit_test(it_may_be_called_behind_its_endbr),
		cmocka_unit_test(what_jumps_to_it_is_called_for_it),
		cmocka_unit_test(functions_that_jump_to_each_other_are_looked_at_once),
		cmocka_unit_test(too_many_places_are_none),
		cmocka_unit_test(nor_is_it_looked_through_many_jumps),
		cmocka_unit_test(other_bytes_are_no_calls),
		cmocka_unit_test(nothing_is_read_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
