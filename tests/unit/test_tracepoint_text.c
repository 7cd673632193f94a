#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/code/machine.h"
#include "decode/code/machines.h"
#include "decode/print/tracepoint_text.h"
#include "tests/trace_section.h"

static const uint8_t sample[24] = { 0x34, 2, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2 };
static const char bytes[] =
	"raw: 34 02 00 00 00 00 00 00 07 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00";

/* Prints two samples with a format; returns whether there was a complaint. */
static bool prints(const char *format, uint64_t id, const char *first, const char *second)
{
	static uint8_t room[TRACE_SECTION_MOST];
	struct machines machines = { .host = machine_new(0, false) };
	struct bytes raw = { sample, sizeof(sample) };
	struct tracepoint_text points;
	struct text text = { 0 };
	bool complains;

	assert_non_null(machines.host);
	tracepoint_text_start(&points, trace_section_make(format, room), &machines);
	if (!points.pid)
		skip();
	for (int i = 0; i < 2; i++) {
		text.size = 0;
		tracepoint_text_add(&points, id, 1, 1000, raw, &text);
		text_putc(&text, 0);
		assert_string_equal(text.data, i ? second : first);
	}
	complains = points.note;
	tracepoint_text_stop(&points);
	tracepoint_text_stop(&points);
	text_free(&text);
	machines_free(&machines);
	return complains;
}

static void samples_are_printed_as_their_format_says(void **state)
{
	assert_false(prints("\"count=%u kind=%x\", REC->count, REC->kind", TRACE_SECTION_POINT,
			    "count=7 kind=2", "count=7 kind=2"));
}

static void an_unknown_tracepoint_is_bytes(void **state)
{
	assert_false(prints("\"%u\", REC->count", 77, bytes, bytes));
	assert_false(prints("\"%u\", REC->count", UINT64_MAX, bytes, bytes));
}

static void a_format_that_kills_the_process_leaves_bytes(void **state)
{
	static const char *const killers[] = {
		"\"%d\", REC->count / REC->caller",
		"\"%s\", __print_hex(__get_dynamic_array(caller), 99999999999)",
		"\"%d\", ((u32 *)__get_dynamic_array(count))[0xffffffffffff0]",
	};

	for (size_t i = 0; i < sizeof(killers) / sizeof(*killers); i++)
		assert_true(prints(killers[i], TRACE_SECTION_POINT, bytes, bytes));
}

static void a_recording_without_formats_is_said_to_have_none(void **state)
{
	struct machines machines = { 0 };
	struct tracepoint_text points;
	struct text text = { 0 };

	tracepoint_text_start(&points, (struct bytes){ NULL, 0 }, &machines);
	assert_non_null(points.note);
	assert_int_equal(points.pid, 0);
	tracepoint_text_add(&points, 1, 1, 1, (struct bytes){ sample, sizeof(sample) }, &text);
	text_putc(&text, 0);
	assert_string_equal(text.data, bytes);
	tracepoint_text_stop(&points);
	text_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_printed_as_their_format_says),
		cmocka_unit_test(an_unknown_tracepoint_is_bytes),
		cmocka_unit_test(a_format_that_kills_the_process_leaves_bytes),
		cmocka_unit_test(a_recording_without_formats_is_said_to_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
