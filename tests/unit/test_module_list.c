#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/text.h"
#include "decode/perf/build_id.h"
#include "guest/module_list.h"
#include "guest/module_notes.h"
#include "guest/module_symbols.h"
#include "guest/page_walk.h"
#include "tests/fake_modules.h"

static const uint64_t head = 0xffffffff96800010, image_end = 0xffffffff96801000;
static const uint64_t area = 0xffffffffc0000000;

struct fixture {
	struct fake_memory memory;
	struct page_walk walk;
	struct module_list list;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fake_memory_init(&fixture->memory, 1 << 20, false);
	(void)fake_memory_put(&fixture->memory, head & ~0xfffull, "", 1, FAKE_MEMORY_DATA);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	module_list_free(&fixture->list);
	fake_memory_deinit(&fixture->memory);
	free(fixture);
	return 0;
}

static int find(struct fixture *fixture)
{
	module_list_free(&fixture->list);
	page_walk_init(&fixture->walk, &fixture->memory.reader, fixture->memory.root);
	return module_list_find(&fixture->walk, image_end, &fixture->list, NULL);
}

static void assert_build_id(struct fixture *fixture, size_t index, uint8_t first)
{
	struct text text = { 0 };
	struct build_id id;

	assert_int_equal(
		module_notes_print(&fixture->walk, &fixture->list.items[index], &text, NULL), 0);
	assert_true(build_id_find((struct bytes){ (uint8_t *)text.data, text.size }, &id));
	assert_int_equal(id.size, BUILD_ID_BYTES);
	assert_int_equal(id.bytes[0], first);
	text_free(&text);
}

static void each_layout_is_understood(void **state)
{
	static const enum fake_module_layout layouts[] = { FAKE_MODULE_5_2, FAKE_MODULE_6_4,
							   FAKE_MODULE_6_13, FAKE_MODULE_6_14 };
	struct fixture *fixture = *state;

	for (unsigned i = 0; i < 4; i++) {
		(void)fake_modules_put(&fixture->memory, head, area, 2, layouts[i]);
		assert_int_equal(find(fixture), 0);
		assert_int_equal(fixture->list.count, 2);
		assert_string_equal(fixture->list.items[0].name, "module_1");
		assert_string_equal(fixture->list.items[1].name, "module_0");
		assert_int_equal(fixture->list.items[1].state, MODULE_LIVE);
		assert_int_equal(fixture->list.items[1].text, area);
		assert_int_equal(fixture->list.items[1].size, 0x3000);
		assert_int_equal(fixture->list.items[1].symbol_count, 3);
		assert_build_id(fixture, 0, FAKE_MODULE_ID + 1);
		assert_build_id(fixture, 1, FAKE_MODULE_ID);
	}
}

static void they_are_shown_as_the_kernel_shows_them(void **state)
{
	struct fixture *fixture = *state;
	struct text text = { 0 };

	(void)fake_modules_put(&fixture->memory, head, area, 2, FAKE_MODULE_6_4);
	assert_int_equal(find(fixture), 0);
	module_list_print(&fixture->list, &text);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(module_symbols_print(&fixture->walk, &fixture->list.items[i],
						      SIZE_MAX, &text),
				 0);
	text_putc(&text, '\0');
	assert_string_equal(text.data, "module_1 12288 - - Live 0xffffffffc0005000\n"
				       "module_0 12288 - - Live 0xffffffffc0000000\n"
				       "ffffffffc0005000 t start\t[module_1]\n"
				       "ffffffffc0005030 t stop\t[module_1]\n"
				       "ffffffffc0000000 t start\t[module_0]\n"
				       "ffffffffc0000030 t stop\t[module_0]\n");
	text_free(&text);
}

static void a_module_that_is_not_complete_is_left_out(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *first = fake_modules_put(&fixture->memory, head, area, 2, FAKE_MODULE_5_2);

	first[0] = MODULE_UNFORMED;
	assert_int_equal(find(fixture), 0);
	assert_int_equal(fixture->list.count, 1);
	first[0] = MODULE_COMING;
	assert_int_equal(find(fixture), 0);
	assert_int_equal(fixture->list.count, 2);
}

static void without_a_list_there_are_no_modules(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *first = fake_modules_put(&fixture->memory, head, area, 3, FAKE_MODULE_5_2);

	first[8] ^= 0x40; /* points elsewhere */
	assert_int_equal(find(fixture), 0);
	assert_int_equal(fixture->list.count, 0);
}

/* Modules that form a ring which does not contain the kernel's list head. */
static void a_list_without_its_head_ends(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *first = fake_modules_put(&fixture->memory, head, area, 1, FAKE_MODULE_5_2);
	uint64_t self = area + 0x1240 + 8;

	memcpy(first + 8, &self, 8);
	memcpy(first + 16, &self, 8);
	assert_int_equal(find(fixture), 0);
	assert_int_equal(fixture->list.count, 0);
}

static void symbols_that_make_no_sense_are_left_out(void **state)
{
	struct fixture *fixture = *state;
	struct text text = { 0 };
	struct listed_module module;

	(void)fake_modules_put(&fixture->memory, head, area, 1, FAKE_MODULE_5_2);
	assert_int_equal(find(fixture), 0);
	module = fixture->list.items[0];
	module.symbol_count = MODULE_SYMBOLS + 1;
	assert_int_equal(module_symbols_print(&fixture->walk, &module, SIZE_MAX, &text), 0);
	module.symbol_count = 100;
	module.symbols = 0xffffffffc0f00000; /* nothing is there */
	assert_int_equal(module_symbols_print(&fixture->walk, &module, SIZE_MAX, &text), 0);
	assert_int_equal(text.size, 0);
}

static void what_has_no_build_id_has_none(void **state)
{
	static const uint64_t places[] = { 0, 0xffffffffd0000000 }; /* not known, not mapped */
	struct fixture *fixture = *state;
	struct text text = { 0 };

	(void)fake_modules_put(&fixture->memory, head, area, 1, FAKE_MODULE_6_4);
	assert_int_equal(find(fixture), 0);
	for (unsigned i = 0; i < 2; i++) {
		fixture->list.items[0].fixed = places[i];
		assert_int_equal(
			module_notes_print(&fixture->walk, &fixture->list.items[0], &text, NULL),
			0);
	}
	fixture->list.items[0].fixed = area;
	fixture->list.items[0].fixed_size = 35; /* too small for one */
	assert_int_equal(module_notes_print(&fixture->walk, &fixture->list.items[0], &text, NULL),
			 0);
	assert_int_equal(text.size, 0);
}

static void memory_that_fails_is_told(void **state)
{
	struct fixture *fixture = *state;

	(void)fake_modules_put(&fixture->memory, head, area, 1, FAKE_MODULE_5_2);
	fixture->memory.fails = true;
	assert_int_equal(find(fixture), -PTVM_SYSTEM);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(each_layout_is_understood),
		WITH_FIXTURE(they_are_shown_as_the_kernel_shows_them),
		WITH_FIXTURE(a_module_that_is_not_complete_is_left_out),
		WITH_FIXTURE(without_a_list_there_are_no_modules),
		WITH_FIXTURE(a_list_without_its_head_ends),
		WITH_FIXTURE(symbols_that_make_no_sense_are_left_out),
		WITH_FIXTURE(what_has_no_build_id_has_none),
		WITH_FIXTURE(memory_that_fails_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
