#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/script.h"
#include "tests/perf_build.h"
#include "tests/pt_encode.h"

/* Dumps of a raw trace of many packets, a line each; and of a recording. */

enum { PACKETS = 5000 };

struct fixture {
	struct script script;
	struct pt_bytes trace;
	char *text;
	size_t size;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	for (uint64_t i = 0; i < PACKETS; i++)
		pt_put_value(&f->trace, PT_TSC, i);
	f->script.raw.span = (struct aux_span){ .data = f->trace.data,
						.size = f->trace.size,
						.file_offset = 0x5000 };
	f->script.args.pt = "trace";
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	pt_bytes_free(&f->trace);
	free(f->text);
	free(f);
	return 0;
}

/* How many lines are dumped, all of them whole. */
static size_t lines_of(struct fixture *f)
{
	size_t lines = 0;
	FILE *out;

	free(f->text);
	out = open_memstream(&f->text, &f->size);
	assert_non_null(out);
	assert_int_equal(script_dump(&f->script, out, NULL), 0);
	(void)fclose(out);
	for (size_t i = 0; i < f->size; i++)
		lines += f->text[i] == '\n';
	assert_true(!f->size || f->text[f->size - 1] == '\n');
	return lines;
}

static void a_raw_trace_is_packets_at_their_places_in_the_file(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(lines_of(f), PACKETS);
	assert_non_null(strstr(f->text, "5000:  19 00 00 00 00 00 00 00"));
	assert_non_null(strstr(f->text, "5008:  19 01 00 00 00 00 00 00"));
}

static void lines_are_limited_to_the_line(void **state)
{
	static const size_t limits[] = { 1, 2, 100, PACKETS - 1, PACKETS };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		f->script.args.max_lines = limits[i];
		assert_int_equal(lines_of(f), limits[i]);
	}
}

static void a_limit_that_is_not_reached_changes_nothing(void **state)
{
	struct fixture *f = *state;
	size_t size;

	(void)lines_of(f);
	size = f->size;
	f->script.args.max_lines = PACKETS + 1;
	assert_int_equal(lines_of(f), PACKETS);
	assert_int_equal(f->size, size);
}

static void output_that_fails_is_told(void **state)
{
	static const uint64_t limits[] = { 0, PACKETS + 1 };
	struct fixture *f = *state;

	for (size_t i = 0; i < 2; i++) {
		struct ptvm_error error = { 0 };
		FILE *full = fopen("/dev/full", "we");

		assert_non_null(full);
		f->script.args.max_lines = limits[i];
		assert_int_equal(setvbuf(full, NULL, _IONBF, 0), 0);
		assert_int_equal(script_dump(&f->script, full, &error), -PTVM_SYSTEM);
		assert_string_equal(error.message, "cannot write the dump");
		(void)fclose(full);
	}
}

static void a_recording_is_dumped_with_its_packets(void **state)
{
	struct fixture *f = *state;
	struct perf_build build = { 0 };

	perf_build_pt(&build, 0, 1);
	perf_build_aux(&build, 0, 0, f->trace.data, 16);
	assert_int_equal(perf_data_open_bytes(perf_build_file(&build), &f->script.data, NULL), 0);
	f->script.args.pt = NULL;
	(void)lines_of(f);
	assert_non_null(strstr(f->text, "PERF_RECORD_AUXTRACE "));
	assert_non_null(strstr(f->text, "00000008:  19 01 00 00 00 00 00 00"));
	f->script.args.max_lines = 3;
	assert_int_equal(lines_of(f), 3);
	perf_data_close(&f->script.data);
	perf_build_free(&build);
}

static void the_header_is_what_a_recording_says_of_itself(void **state)
{
	struct fixture *f = *state;
	struct perf_build build = { 0 };
	FILE *out = open_memstream(&f->text, &f->size);

	assert_non_null(out);
	perf_build_pt(&build, 0, 1);
	assert_int_equal(perf_data_open_bytes(perf_build_file(&build), &f->script.data, NULL), 0);
	f->script.args.pt = NULL;
	assert_int_equal(script_print_header(&f->script, out, NULL), 0);
	(void)fclose(out);
	assert_non_null(strstr(f->text, "# ========"));
	perf_data_close(&f->script.data);
	perf_build_free(&build);
}

static void a_raw_trace_has_no_header(void **state)
{
	struct fixture *f = *state;
	struct ptvm_error error = { 0 };

	assert_int_equal(script_print_header(&f->script, stderr, &error), -PTVM_BAD_USAGE);
	assert_non_null(strstr(error.message, "no header"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_raw_trace_is_packets_at_their_places_in_the_file),
		TEST(lines_are_limited_to_the_line),
		TEST(a_limit_that_is_not_reached_changes_nothing),
		TEST(output_that_fails_is_told),
		TEST(a_recording_is_dumped_with_its_packets),
		TEST(the_header_is_what_a_recording_says_of_itself),
		TEST(a_raw_trace_has_no_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
