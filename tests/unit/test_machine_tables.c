#include "decode/code/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"

/* A kernel whose table has labels, the first of which switches a tracepoint on:
 *     xor; the label; ret; and APART: xor; call ITERATOR; jmp behind the label
 */

enum { SIZE = 0x40, LABEL = 2, APART = 0x10, CALL = 0x12, ITERATOR = 0x30, PROBE = 0x38 };
enum {
	ENTRY_SIZE = 16,
	ENTRIES = 4,
	TABLE_SIZE = ENTRIES * ENTRY_SIZE,
	WITH_NEXT = TABLE_SIZE + ENTRY_SIZE,
};

static const uint64_t base = 0xffffffff81000000, table = 0xffffffff82000000;

/* Where the table is and what it is about. */
static const struct symbol bounds[] = {
	{ .start = base, .name = "_stext" },
	{ .start = base + SIZE, .name = "_etext" },
	{ .start = table, .name = "__start___jump_table" },
	{ .start = table + TABLE_SIZE, .name = "__stop___jump_table" },
};

enum { BOUNDS = sizeof(bounds) / sizeof(bounds[0]) };

static int set_up(void **state)
{
	*state = machine_new(0, false);
	assert_non_null(*state);
	return 0;
}

static int tear_down(void **state)
{
	machine_free(*state);
	return 0;
}

static void add_code(struct machine *machine)
{
	uint8_t code[SIZE];

	memset(code, 0xcc, SIZE);
	memcpy(code, "\x31\xc0\x0f\x1f\x44\0\0\xc3", 8);
	memcpy(code + APART, "\x31\xc0\xe8\x19\0\0\0\xe9\xeb\xff\xff\xff", 12);
	assert_true(bench_add_code(machine, base, code, SIZE));
}

static void add_name(struct machine *machine, uint64_t start, const char *name)
{
	const struct symbol symbol = { .start = start, .name = name, .is_global = true };

	assert_int_equal(symbols_add(&machine->symbols, &symbol), 0);
	assert_int_equal(symbols_finish(&machine->symbols, true), 0);
}

static void add_tracepoint(struct machine *machine)
{
	add_name(machine, base, "function");
	add_name(machine, base + ITERATOR, "__traceiter_x");
	add_name(machine, base + PROBE, "trace_event_raw_event_x");
}

/* All of `bounds` but one. */
static void add_bounds(struct machine *machine, unsigned except)
{
	for (unsigned i = 0; i < BOUNDS; i++)
		if (i != except)
			add_name(machine, bounds[i].start, bounds[i].name);
}

/* The first `size` bytes of the table, of whose labels so many are in the code; one that is follows
 * it. */
static void add_table(struct machine *machine, unsigned labels, size_t size)
{
	int32_t entries[WITH_NEXT / sizeof(int32_t)] = { 0 };

	for (unsigned i = 0; i <= ENTRIES; i++) {
		const uint64_t at = table + i * ENTRY_SIZE;
		const uint64_t label = i < labels || i == ENTRIES ? base + LABEL + i : base + SIZE;

		entries[4 * i] = (int32_t)(label - at);
		entries[4 * i + 1] = (int32_t)(base + APART - (at + 4));
	}
	assert_true(bench_add_code(machine, table, entries, size));
}

static void labels_are_those_of_the_table(void **state)
{
	const struct label_table *labels;

	add_bounds(*state, BOUNDS);
	add_table(*state, ENTRIES, WITH_NEXT);
	labels = machine_labels(*state);
	assert_non_null(labels);
	assert_int_equal(labels->count, ENTRIES);
	assert_int_equal(labels->items[0].site, base + LABEL);
	assert_int_equal(labels->items[0].target, base + APART);
	assert_int_equal(labels->from, base);
	assert_int_equal(labels->to, base + SIZE);
	assert_ptr_equal(machine_labels(*state), labels);
}

static void without_its_ends_or_those_of_the_code_there_is_no_table(void **state)
{
	for (unsigned i = 0; i < BOUNDS; i++) {
		struct machine *machine = machine_new(0, false);

		add_bounds(machine, i);
		add_table(machine, ENTRIES, WITH_NEXT);
		assert_null(machine_labels(machine));
		machine_free(machine);
	}
}

static void all_of_the_table_must_be_known(void **state)
{
	add_bounds(*state, BOUNDS);
	add_table(*state, ENTRIES, TABLE_SIZE - 1);
	assert_null(machine_labels(*state));
}

static void most_of_it_must_be_about_the_code(void **state)
{
	add_bounds(*state, BOUNDS);
	add_table(*state, 1, WITH_NEXT);
	assert_null(machine_labels(*state));
}

static void probes_are_known_by_symbols(void **state)
{
	const struct probe_table *probes;

	add_tracepoint(*state);
	probes = machine_probes(*state);
	assert_non_null(probes);
	assert_int_equal(probe_table_find(probes, base + ITERATOR)->probes[0].address,
			 base + PROBE);
	assert_ptr_equal(machine_probes(*state), probes);
	assert_null(machine_labels(*state));
}

static void tracepoints_are_found_in_code(void **state)
{
	const struct tracepoint_table *tracepoints;

	add_code(*state);
	add_tracepoint(*state);
	tracepoints = machine_tracepoints(*state);
	assert_non_null(tracepoints);
	assert_int_equal(tracepoints->count, 2);
	assert_int_equal(tracepoint_table_find(tracepoints, base + LABEL)->call, base + CALL);
	assert_ptr_equal(tracepoint_table_find(tracepoints, base + CALL)->entry,
			 probe_table_find(machine_probes(*state), base + ITERATOR));
	assert_ptr_equal(machine_tracepoints(*state), tracepoints);
}

static void callers_are_found_in_code(void **state)
{
	const struct caller_table *callers;
	uint64_t place;

	add_code(*state);
	add_tracepoint(*state);
	add_name(*state, base + APART, "caller");
	callers = machine_callers(*state);
	assert_non_null(callers);
	assert_int_equal(caller_table_find(callers, base + ITERATOR, &place, 1), 1);
	assert_int_equal(place, base + CALL + 5);
	assert_ptr_equal(machine_callers(*state), callers);
}

static void where_nothing_is_known_there_are_none(void **state)
{
	add_code(*state);
	assert_null(machine_tracepoints(*state));
	assert_null(machine_callers(*state));
	assert_null(machine_probes(*state));
	assert_null(machine_labels(*state));
}

/* What comes later is not looked at: others may have the tables already. */
static void symbols_are_read_when_first_asked(void **state)
{
	assert_null(machine_labels(*state));
	add_bounds(*state, BOUNDS);
	add_tracepoint(*state);
	add_table(*state, ENTRIES, WITH_NEXT);
	assert_null(machine_labels(*state));
	assert_null(machine_probes(*state));
}

static void code_is_read_when_first_asked(void **state)
{
	add_tracepoint(*state);
	assert_null(machine_tracepoints(*state));
	add_code(*state);
	assert_null(machine_tracepoints(*state));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(labels_are_those_of_the_table, set_up, tear_down),
		cmocka_unit_test(without_its_ends_or_those_of_the_code_there_is_no_table),
		cmocka_unit_test_setup_teardown(all_of_the_table_must_be_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(most_of_it_must_be_about_the_code, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(probes_are_known_by_symbols, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tracepoints_are_found_in_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(callers_are_found_in_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(where_nothing_is_known_there_are_none, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(symbols_are_read_when_first_asked, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(code_is_read_when_first_asked, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
