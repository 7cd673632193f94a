#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "decode/print/trace_formats.h"
#include "tests/trace_section.h"

static uint8_t room[TRACE_SECTION_MOST];

static void formats_are_found_with_their_system(void **state)
{
	struct trace_formats formats = { 0 };

	assert_int_equal(trace_formats_read(trace_section_make("\"x\"", room), &formats), 0);
	assert_int_equal(formats.list.count, 1);
	assert_string_equal(formats.list.items[0].system, "test");
	assert_memory_equal(formats.list.items[0].text.data, "name: step\n", 11);
	assert_int_equal(formats.long_size, 8);
	assert_memory_equal(formats.strings.data, "0xffffffff82000000", 18);
	trace_formats_free(&formats);
}

static void a_section_may_be_cut_anywhere(void **state)
{
	struct bytes whole = trace_section_make("\"x\"", room);

	for (size_t size = 0; size + sizeof(uint64_t) < whole.size; size++) {
		struct trace_formats formats = { 0 };

		assert_int_equal(trace_formats_read(bytes_slice(whole, 0, size), &formats),
				 -PTVM_BAD_INPUT);
		assert_true(formats.list.count <= 1);
		trace_formats_free(&formats);
	}
}

static void another_byte_order_is_refused(void **state)
{
	struct bytes section = trace_section_make("\"x\"", room);
	struct trace_formats formats = { 0 };

	room[sizeof("\x17\x08"
		    "Dtracing0.6")] = 1;
	assert_int_equal(trace_formats_read(section, &formats), -PTVM_BAD_INPUT);
	assert_int_equal(formats.list.count, 0);
	trace_formats_free(&formats);
}

static void more_formats_than_there_are_bytes_is_damage(void **state)
{
	struct bytes section = trace_section_make("\"x\"", room);
	uint8_t *count = memmem(room, section.size, "test", 5);
	struct trace_formats formats = { 0 };

	assert_non_null(count);
	memset(count + 5, 0xff, 4);
	assert_int_equal(trace_formats_read(section, &formats), -PTVM_BAD_INPUT);
	trace_formats_free(&formats);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_are_found_with_their_system),
		cmocka_unit_test(a_section_may_be_cut_anywhere),
		cmocka_unit_test(another_byte_order_is_refused),
		cmocka_unit_test(more_formats_than_there_are_bytes_is_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
