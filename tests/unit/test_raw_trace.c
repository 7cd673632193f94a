#include "decode/perf/raw_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "decode/base/cleanup.h"

static struct file_range parse(const char *text, bool with_address)
{
	struct ptvm_error error = { 0 };
	struct file_range range;

	if (file_range_parse(text, with_address, &range, &error))
		fail_msg("%s: %s", text, error.message);
	return range;
}

static void a_file_may_have_a_range(void **state)
{
	struct file_range range = parse("trace.pt", false);

	assert_string_equal(range.path, "trace.pt");
	assert_int_equal(range.from, 0);
	assert_int_equal(range.to, 0);
	range = parse("trace.pt:0x10-32", false);
	assert_string_equal(range.path, "trace.pt");
	assert_int_equal(range.from, 16);
	assert_int_equal(range.to, 32);
	range = parse("trace.pt:4096", false);
	assert_int_equal(range.from, 4096);
	assert_int_equal(range.to, 0);
}

static void code_has_an_address_behind_its_range(void **state)
{
	struct file_range range = parse("image:0x10-0x20:0xffffffff81000000", true);

	assert_string_equal(range.path, "image");
	assert_int_equal(range.from, 0x10);
	assert_int_equal(range.to, 0x20);
	assert_true(range.have_address);
	assert_int_equal(range.address, 0xffffffff81000000);
	range = parse("image:0x400000", true);
	assert_string_equal(range.path, "image");
	assert_int_equal(range.from, 0);
	assert_int_equal(range.address, 0x400000);
}

static void a_file_name_may_have_colons(void **state)
{
	struct file_range range = parse("a:b", false);

	assert_string_equal(range.path, "a:b");
	range = parse("a:1x:2", false);
	assert_string_equal(range.path, "a:1x");
	assert_int_equal(range.from, 2);
	range = parse("a:b:0x1000", true);
	assert_string_equal(range.path, "a:b");
	assert_int_equal(range.address, 0x1000);
}

static void code_without_an_address_is_refused(void **state)
{
	struct ptvm_error error = { 0 };
	struct file_range range;

	assert_int_equal(file_range_parse("image", true, &range, &error), -PTVM_BAD_USAGE);
	assert_non_null(strstr(error.message, "'image'"));
	assert_int_equal(file_range_parse("image:0x10-0x20", true, &range, NULL), -PTVM_BAD_USAGE);
	assert_int_equal(file_range_parse("image:-1", true, &range, NULL), -PTVM_BAD_USAGE);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	struct file_range range;
	char name[sizeof(range.path) + 1];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(file_range_parse(name, false, &range, NULL), -PTVM_BAD_USAGE);
}

/* Opens part of a file of ten bytes, '0' to '9'. */
static int open_part(uint64_t from, uint64_t to, struct raw_trace *ret)
{
	_cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);
	struct file_range range = { .from = from, .to = to };

	assert_int_equal(write(fd, "0123456789", 10), 10);
	(void)snprintf(range.path, sizeof(range.path), "/proc/self/fd/%d", fd);
	return raw_trace_open(&range, ret, NULL);
}

static void a_range_of_the_file_is_the_queue(void **state)
{
	struct raw_trace trace = { .queue = { 0 } };

	assert_int_equal(open_part(3, 7, &trace), 0);
	assert_int_equal(trace.queue.count, 1);
	assert_int_equal(trace.queue.size, 4);
	assert_memory_equal(trace.queue.spans[0].data, "3456", 4);
	assert_int_equal(trace.queue.spans[0].file_offset, 3);
	raw_trace_close(&trace);
	assert_int_equal(open_part(8, 1000, &trace), 0);
	assert_int_equal(trace.queue.size, 2);
	raw_trace_close(&trace);
}

static void a_range_without_bytes_is_refused(void **state)
{
	const uint64_t ranges[][2] = { { 10, 0 }, { 5, 5 }, { UINT64_MAX, 0 } };

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct raw_trace trace = { .queue = { 0 } };

		assert_int_equal(open_part(ranges[i][0], ranges[i][1], &trace), -PTVM_BAD_INPUT);
		raw_trace_close(&trace);
	}
}

/* But a part of one may be its trace. */
static void a_recording_is_no_raw_trace(void **state)
{
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	struct file_range range = { .from = 0 };
	struct raw_trace trace = { .queue = { 0 } };
	struct ptvm_error error = { 0 };

	assert_int_equal(write(fd, "PERFILE2\x68\0\0\0\0\0\0\0more", 20), 20);
	(void)snprintf(range.path, sizeof(range.path), "/proc/self/fd/%d", fd);
	assert_int_equal(raw_trace_open(&range, &trace, &error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, ": a recording, which -i reads, not a raw trace"));
	raw_trace_close(&trace);
	range.from = 16;
	assert_int_equal(raw_trace_open(&range, &trace, &error), 0);
	assert_int_equal(trace.queue.size, 4);
	raw_trace_close(&trace);
}

static void a_missing_file_is_named(void **state)
{
	const struct file_range range = { .path = "/nonexistent/trace" };
	struct raw_trace trace = { .queue = { 0 } };
	struct ptvm_error error = { 0 };

	assert_int_equal(raw_trace_open(&range, &trace, &error), -PTVM_SYSTEM);
	assert_non_null(strstr(error.message, "/nonexistent/trace"));
}

static void a_cpu_is_family_model_and_stepping(void **state)
{
	static const char *const bad[] = { "", "6", "6/", "6/85/", "6/85/4/1", "x/1", "6-85" };
	struct pt_config config = { .cpu_stepping = 9 };

	assert_int_equal(raw_trace_parse_cpu("6/85", &config, NULL), 0);
	assert_int_equal(config.cpu_family, 6);
	assert_int_equal(config.cpu_model, 85);
	assert_int_equal(config.cpu_stepping, 0);
	assert_int_equal(raw_trace_parse_cpu("6/0x55/7", &config, NULL), 0);
	assert_int_equal(config.cpu_stepping, 7);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(raw_trace_parse_cpu(bad[i], &config, NULL), -PTVM_BAD_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_may_have_a_range),
		cmocka_unit_test(code_has_an_address_behind_its_range),
		cmocka_unit_test(a_file_name_may_have_colons),
		cmocka_unit_test(code_without_an_address_is_refused),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
		cmocka_unit_test(a_range_of_the_file_is_the_queue),
		cmocka_unit_test(a_range_without_bytes_is_refused),
		cmocka_unit_test(a_recording_is_no_raw_trace),
		cmocka_unit_test(a_missing_file_is_named),
		cmocka_unit_test(a_cpu_is_family_model_and_stepping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
