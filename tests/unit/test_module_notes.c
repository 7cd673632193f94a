#include "guest/module_notes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/text.h"
#include "decode/perf/build_id.h"
#include "guest/module_list.h"
#include "tests/fake_memory.h"

static const uint64_t address = 0xffffffffc0001000;

enum { PAGE = FAKE_MEMORY_PAGE, NOTE_BYTES = 16 + BUILD_ID_BYTES };

static struct fixture {
	struct fake_memory memory;
	struct page_walk walk;
	struct text text;
	struct listed_module module;
	uint8_t *data; /* a page of it */
} fixture;

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fake_memory_init(&fixture.memory, 32 * PAGE, false);
	page_walk_init(&fixture.walk, &fixture.memory.reader, fixture.memory.root);
	fixture.data = fake_memory_put(&fixture.memory, address, "", 1, FAKE_MEMORY_DATA);
	fixture.module = (struct listed_module){ .fixed = address, .fixed_size = PAGE };
	return 0;
}

static int tear_down(void **state)
{
	text_free(&fixture.text);
	fake_memory_deinit(&fixture.memory);
	return 0;
}

/* A build id of which each byte is `id`. */
static void put_note(size_t at, uint8_t id)
{
	memcpy(fixture.data + at, "\4\0\0\0\x14\0\0\0\3\0\0\0GNU", 16);
	memset(fixture.data + at + 16, id, BUILD_ID_BYTES);
}

static int print(struct ptvm_error *error)
{
	return module_notes_print(&fixture.walk, &fixture.module, &fixture.text, error);
}

static void assert_note(uint8_t id)
{
	const struct bytes notes = { (const uint8_t *)fixture.text.data, fixture.text.size };
	struct build_id found;

	assert_int_equal(notes.size, NOTE_BYTES);
	assert_true(build_id_find(notes, &found));
	assert_int_equal(found.size, BUILD_ID_BYTES);
	assert_int_equal(found.bytes[0], id);
	assert_int_equal(found.bytes[BUILD_ID_BYTES - 1], id);
}

static void assert_nothing(void)
{
	assert_int_equal(print(NULL), 0);
	assert_int_equal(fixture.text.size, 0);
}

static void the_note_is_found_at_any_word(void **state)
{
	static const size_t places[] = { 0, 4, 0x7f4, PAGE - NOTE_BYTES };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		memset(fixture.data, 0, PAGE);
		put_note(places[i], (uint8_t)(i + 1));
		assert_int_equal(print(NULL), 0);
		assert_note((uint8_t)(i + 1));
		text_free(&fixture.text);
	}
}

static void the_first_of_two_counts(void **state)
{
	put_note(0x100, 1);
	put_note(0x200, 2);
	assert_int_equal(print(NULL), 0);
	assert_note(1);
}

static void what_is_no_such_note_is_passed_over(void **state)
{
	put_note(0x102, 1); /* notes are aligned */
	put_note(0x200, 2);
	fixture.data[0x200 + 4] = BUILD_ID_BYTES - 4; /* another size */
	put_note(0x300, 3);
	fixture.data[0x300 + 8] = 4; /* another kind */
	put_note(0x400, 4);
	fixture.data[0x400 + 15] = 'X'; /* another name */
	assert_nothing();
}

static void a_note_that_goes_on_behind_the_data_is_none(void **state)
{
	put_note(PAGE - NOTE_BYTES, 1);
	fixture.module.fixed_size = PAGE - 4;
	assert_nothing();
}

static void a_note_is_all_that_there_need_be(void **state)
{
	put_note(0, 1);
	fixture.module.fixed_size = NOTE_BYTES - 1;
	assert_nothing();
	fixture.module.fixed_size = NOTE_BYTES;
	assert_int_equal(print(NULL), 0);
	assert_note(1);
}

static void a_module_whose_data_is_unknown_has_none(void **state)
{
	put_note(0, 1);
	fixture.module.fixed = 0;
	assert_nothing();
}

/* What a guest calls the size of a module is not believed. */
static void a_large_module_is_searched_in_part(void **state)
{
	fixture.module.fixed = address - MODULE_NOTES_BYTES;
	fixture.module.fixed_size = UINT32_MAX;
	put_note(0, 1);
	assert_nothing();
	fixture.module.fixed += NOTE_BYTES;
	assert_int_equal(print(NULL), 0);
	assert_note(1);
}

static void memory_that_fails_is_told(void **state)
{
	struct ptvm_error error = { 0 };

	put_note(0, 1);
	fixture.memory.fails = true;
	assert_int_equal(print(&error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "no memory any more");
	assert_int_equal(fixture.text.size, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_note_is_found_at_any_word),
		TEST(the_first_of_two_counts),
		TEST(what_is_no_such_note_is_passed_over),
		TEST(a_note_that_goes_on_behind_the_data_is_none),
		TEST(a_note_is_all_that_there_need_be),
		TEST(a_module_whose_data_is_unknown_has_none),
		TEST(a_large_module_is_searched_in_part),
		TEST(memory_that_fails_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
