#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/perf/build_id.h"

/* Two notes: one of 3 bytes, and the build id. */
static const uint8_t notes[] = { 4,   0, 0, 0, 3,   0,   0,   0, 1, 0, 0,   0,  'X', 'e',
				 'n', 0, 1, 2, 3,   0,   4,   0, 0, 0, 4,   0,  0,   0,
				 3,   0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 254, 255 };

static struct bytes first(size_t size)
{
	return (struct bytes){ notes, size };
}

static void the_note_is_found_behind_others(void **state)
{
	struct build_id id;

	assert_true(build_id_find(first(sizeof(notes)), &id));
	assert_int_equal(id.size, 4);
	assert_memory_equal(id.bytes, "\x01\x02\xfe\xff", 4);
}

static void notes_that_are_cut_have_none(void **state)
{
	struct build_id id;

	for (size_t size = 0; size < sizeof(notes); size++) {
		id.size = 9;
		assert_false(build_id_find(first(size), &id));
		assert_int_equal(id.size, 0);
	}
}

static void an_id_that_is_too_long_is_none(void **state)
{
	uint8_t made[16 + 64] = { 4, 0, 0, 0, 21, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U' };
	struct build_id id;

	assert_false(build_id_find((struct bytes){ made, sizeof(made) }, &id));
	made[4] = 20;
	assert_true(build_id_find((struct bytes){ made, sizeof(made) }, &id));
	memset(made, 0xff, 12);
	assert_false(build_id_find((struct bytes){ made, sizeof(made) }, &id));
}

static void ids_are_the_same_by_size_and_bytes(void **state)
{
	uint8_t bytes[BUILD_ID_BYTES + 4] = { 1, 2, 3 };
	struct build_id id = build_id_make(bytes, 3), longer = build_id_make(bytes, 4);

	assert_int_equal(build_id_compare(&id, &id), 0);
	assert_true(build_id_compare(&id, &longer) < 0);
	assert_true(build_id_compare(&longer, &id) > 0);
	bytes[2] = 4;
	longer = build_id_make(bytes, 3);
	assert_true(build_id_compare(&id, &longer) < 0);
	assert_int_equal(build_id_make(bytes, sizeof(bytes)).size, BUILD_ID_BYTES);
}

static void an_id_is_written_in_hexadecimal(void **state)
{
	const uint8_t bytes[] = { 0, 0x1f, 0xa0 };
	struct build_id id = build_id_make(bytes, sizeof(bytes));
	char text[BUILD_ID_TEXT_BYTES];

	assert_string_equal(build_id_text(&id, text), "001fa0");
	id.size = 0;
	assert_string_equal(build_id_text(&id, text), "");
	memset(id.bytes, 0xff, sizeof(id.bytes));
	id.size = BUILD_ID_BYTES;
	assert_int_equal(strlen(build_id_text(&id, text)), BUILD_ID_TEXT_BYTES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_note_is_found_behind_others),
		cmocka_unit_test(notes_that_are_cut_have_none),
		cmocka_unit_test(an_id_that_is_too_long_is_none),
		cmocka_unit_test(ids_are_the_same_by_size_and_bytes),
		cmocka_unit_test(an_id_is_written_in_hexadecimal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
