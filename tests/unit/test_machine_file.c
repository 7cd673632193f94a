/* Code given by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/code/machine.h"
#include "decode/code/machines.h"
#include "tests/elf_make.h"
#include "tests/fake_tree.h"

struct bench {
	struct fake_tree tree;
	struct machines machines; /* the host alone */
	struct ptvm_error error;
	char path[128];
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	fake_tree_init(&bench->tree);
	(void)snprintf(bench->path, sizeof(bench->path), "%s/code", bench->tree.path);
	bench->machines.host = machine_new(0, false);
	assert_non_null(bench->machines.host);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	machines_free(&bench->machines);
	fake_tree_deinit(&bench->tree);
	free(bench);
	return 0;
}

static void write_elf(struct bench *bench, const struct elf_make_segment *segments, size_t count,
		      size_t less)
{
	uint8_t file[1024];
	const size_t size = elf_make(segments, count, file);

	fake_tree_bytes(&bench->tree, file, size - less, "code");
}

static int add_elf(struct bench *bench, uint64_t base)
{
	bench->error = (struct ptvm_error){ 0 };
	return machine_add_elf(bench->machines.host, bench->path, base, &bench->error);
}

static int add_raw(struct bench *bench, uint64_t from, uint64_t to, uint64_t address)
{
	bench->error = (struct ptvm_error){ 0 };
	return machine_add_raw(bench->machines.host, bench->path, from, to, address, &bench->error);
}

/* The code at an address is this text, and no more follows; "" none. */
static void assert_code(struct bench *bench, uint64_t address, const char *expected)
{
	struct code_view view;
	int r = machine_code(bench->machines.host, 5, address, 100, &view);

	assert_int_equal(r, *expected ? 0 : -PTVM_NO_CODE);
	assert_true(view.from == 0 && view.to == UINT64_MAX);
	if (!*expected)
		return;
	assert_int_equal(view.left, strlen(expected));
	assert_memory_equal(view.data, expected, view.left);
}

static const char *dso_at(struct bench *bench, uint64_t address)
{
	struct symbol_view view;

	machine_symbol(bench->machines.host, 5, address, 0, &view);
	return view.dso;
}

static void all_segments_lie_at_their_addresses_and_the_base(void **state)
{
	const struct elf_make_segment segments[] = { { 0x400000, "text", 4 },
						     { 0x600000, "data", 4 } };
	struct bench *bench = *state;

	write_elf(bench, segments, 2, 0);
	assert_int_equal(add_elf(bench, 0x1000), 0);
	assert_code(bench, 0x401000, "text");
	assert_code(bench, 0x601003, "a");
	assert_code(bench, 0x400000, "");
	assert_string_equal(dso_at(bench, 0x601003), bench->path);
	assert_null(dso_at(bench, 0x601004));
	assert_null(machines_note(&bench->machines, 0));
}

/* From an address below the file's own it is a wrapped, negative number. */
static void a_base_may_move_code_down(void **state)
{
	const struct elf_make_segment segment = { 0x400000, "text", 4 };
	struct bench *bench = *state;

	write_elf(bench, &segment, 1, 0);
	assert_int_equal(add_elf(bench, -(uint64_t)0x3ff000), 0);
	assert_code(bench, 0x1000, "text");
}

static void write_symbols(struct bench *bench, const struct elf_make_symbol *symbols, size_t count)
{
	const struct elf_make_segment segment = { 0x400000, "text", 4 };
	uint8_t file[1024];

	fake_tree_bytes(&bench->tree, file, elf_make_symbols(&segment, 1, symbols, count, file),
			"code");
}

/* The name of an address, "" where it has none. */
static const char *name_at(struct bench *bench, uint64_t address)
{
	struct symbol_view view;

	machine_symbol(bench->machines.host, 5, address, 100, &view);
	return view.name ? view.name : "";
}

static void symbols_move_with_their_code(void **state)
{
	static const struct elf_make_symbol symbols[] = { { "one", 0x400000, 2 },
							  { "two", 0x400002, 1 } };
	struct bench *bench = *state;

	write_symbols(bench, symbols, 2);
	assert_int_equal(add_elf(bench, 0x1000), 0);
	assert_string_equal(name_at(bench, 0x400fff), "");
	assert_string_equal(name_at(bench, 0x401000), "one");
	assert_string_equal(name_at(bench, 0x401001), "one");
	assert_string_equal(name_at(bench, 0x401002), "two");
	assert_string_equal(name_at(bench, 0x401003), "");
	assert_int_equal(machine_symbol_address(bench->machines.host, "two"), 0x401002);
}

static void a_second_file_leaves_the_first_ones_symbols(void **state)
{
	static const struct elf_make_symbol first = { "first", 0x400000, 2 },
					    second = { "second", 0x400000, 2 };
	struct bench *bench = *state;

	write_symbols(bench, &first, 1);
	assert_int_equal(add_elf(bench, 0x1000), 0);
	assert_int_equal(unlink(bench->path), 0); /* it is still in use */
	write_symbols(bench, &second, 1);
	assert_int_equal(add_elf(bench, 0x20000), 0);
	assert_string_equal(name_at(bench, 0x401000), "first");
	assert_string_equal(name_at(bench, 0x420000), "second");
}

static void what_was_added_last_is_what_is_there(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "first one", "code");
	assert_int_equal(add_raw(bench, 0, 0, 0x1000), 0);
	fake_tree_file(&bench->tree, "ANOTHER", "other");
	(void)snprintf(bench->path, sizeof(bench->path), "%s/other", bench->tree.path);
	assert_int_equal(add_raw(bench, 0, 3, 0x1002), 0);
	assert_code(bench, 0x1000, "fi");
	assert_code(bench, 0x1002, "ANO");
	assert_code(bench, 0x1005, " one");
	assert_string_equal(dso_at(bench, 0x1002), bench->path);
	assert_string_not_equal(dso_at(bench, 0x1005), bench->path);
}

static void a_range_of_a_flat_file_is_taken(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "0123456789", "code");
	assert_int_equal(add_raw(bench, 0, 0, 0x1000), 0);
	assert_int_equal(add_raw(bench, 9, 10, 0x2000), 0);
	assert_int_equal(add_raw(bench, 2, 6, 0x3000), 0);
	assert_int_equal(add_raw(bench, 9, 0, 0xffffffff81000000), 0);
	assert_code(bench, 0x1000, "0123456789");
	assert_code(bench, 0x2000, "9");
	assert_code(bench, 0x3000, "2345");
	assert_code(bench, 0xffffffff81000000, "9");
	assert_string_equal(dso_at(bench, 0x1009), bench->path);
}

static void a_range_that_is_not_in_the_file_is_refused(void **state)
{
	static const uint64_t ranges[][2] = { { 0, 11 },        { 10, 0 }, { 10, 10 },
					      { 5, 5 },         { 6, 5 },  { UINT64_MAX, 0 },
					      { 3, UINT64_MAX } };
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "0123456789", "code");
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		assert_int_equal(add_raw(bench, ranges[i][0], ranges[i][1], 0x1000),
				 -PTVM_BAD_INPUT);
		assert_non_null(strstr(bench->error.message, "has no bytes"));
		assert_non_null(strstr(bench->error.message, bench->path));
	}
	fake_tree_file(&bench->tree, "", "code");
	assert_int_equal(add_raw(bench, 0, 0, 0x1000), -PTVM_BAD_INPUT);
	assert_code(bench, 0x1000, "");
}

static void code_must_fit_below_the_last_address(void **state)
{
	const struct elf_make_segment segment = { 0x400000, "text", 4 };
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "0123456789", "code");
	assert_int_equal(add_raw(bench, 0, 0, UINT64_MAX - 5), -PTVM_BAD_INPUT);
	assert_non_null(strstr(bench->error.message, "nothing fits at 0xfffffffffffffffa"));
	write_elf(bench, &segment, 1, 0);
	assert_int_equal(add_elf(bench, UINT64_MAX - 0x400000 - 1), -PTVM_BAD_INPUT);
}

static void what_is_no_elf_file_is_refused(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(add_elf(bench, 0), -PTVM_SYSTEM);
	assert_non_null(strstr(bench->error.message, bench->path));
	assert_int_equal(add_raw(bench, 0, 0, 0), -PTVM_SYSTEM);
	fake_tree_file(&bench->tree, "text", "code");
	assert_int_equal(add_elf(bench, 0), -PTVM_BAD_INPUT);
	write_elf(bench, NULL, 0, 0);
	assert_int_equal(add_elf(bench, 0), -PTVM_BAD_INPUT);
	assert_non_null(strstr(bench->error.message, "nothing to load"));
}

static void what_a_file_lacks_of_its_segments_is_told(void **state)
{
	const struct elf_make_segment segments[] = { { 0x400000, "text", 4 },
						     { 0x600000, "data", 4 } };
	struct bench *bench = *state;

	write_elf(bench, segments, 2, 1);
	assert_int_equal(add_elf(bench, 0), 0);
	assert_code(bench, 0x600000, "dat");
	assert_non_null(
		strstr(machines_note(&bench->machines, 0), "1 segment not wholly in the file"));
}

/* There is no kernel then that code could be missing of. */
static void no_code_is_missing_where_none_was_given(void **state)
{
	struct bench *bench = *state;

	fake_tree_file(&bench->tree, "0123456789", "code");
	assert_int_equal(add_raw(bench, 0, 0, 0x1000), 0);
	assert_code(bench, 0xffffffff81000000, "");
	assert_null(machines_note(&bench->machines, 0));
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(all_segments_lie_at_their_addresses_and_the_base),
		WITH_FIXTURE(a_base_may_move_code_down),
		WITH_FIXTURE(symbols_move_with_their_code),
		WITH_FIXTURE(a_second_file_leaves_the_first_ones_symbols),
		WITH_FIXTURE(what_was_added_last_is_what_is_there),
		WITH_FIXTURE(a_range_of_a_flat_file_is_taken),
		WITH_FIXTURE(a_range_that_is_not_in_the_file_is_refused),
		WITH_FIXTURE(code_must_fit_below_the_last_address),
		WITH_FIXTURE(what_is_no_elf_file_is_refused),
		WITH_FIXTURE(what_a_file_lacks_of_its_segments_is_told),
		WITH_FIXTURE(no_code_is_missing_where_none_was_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
