#include "decode/perf/perf_damage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "tests/perf_build.h"

enum { DATA = 40 }; /* offset of the header's data section: place and size of the records */

/* All sentences about a damaged recording, one a line. */
static void tell(struct bytes file, char ret[1024])
{
	struct ptvm_error error = { 0 };
	struct perf_data data;
	char path[] = "file";

	if (perf_data_open_bytes(file, &data, &error))
		fail_msg("%s", error.message);
	data.path = data.file_path = path;
	*ret = '\0';
	for (unsigned kind = 0; kind < PERF_DAMAGE_KINDS; kind++) {
		error = (struct ptvm_error){ 0 };
		if (perf_damage_check(&data, kind, &error))
			(void)sprintf(ret + strlen(ret), "%s\n", error.message);
	}
	data.path = data.file_path = NULL;
	perf_data_close(&data);
}

static void add_comm(struct perf_build *build, uint64_t id)
{
	const uint8_t body[16] = { 5, 0, 0, 0, 6, 0, 0, 0, 'n', 'a', 'm', 'e' };

	perf_build_kernel(build, PERF_COMM, 0, body, sizeof(body),
			  (struct build_trailer){ 5, 6, 10, 3, id });
}

static void nothing_is_told_of_a_whole_recording(void **state)
{
	struct perf_build build = { 0 };
	char told[1024];

	perf_build_pt(&build, 0, 1);
	add_comm(&build, 1);
	perf_build_aux(&build, 0, 0, "a trace", 8);
	tell(perf_build_file(&build), told);
	assert_string_equal(told, "");
	perf_build_free(&build);
}

static void damage_is_told_by_its_kind(void **state)
{
	const uint64_t lost[2] = { 0, 7 };
	struct perf_build build = { 0 };
	char told[1024], expected[1024];
	struct bytes file;
	size_t bad;

	perf_build_pt(&build, 0, 1);
	add_comm(&build, 1);
	perf_build_record(&build, PERF_COMM, 0, NULL, 0);
	perf_build_kernel(&build, PERF_LOST, 0, lost, sizeof(lost),
			  (struct build_trailer){ 5, 6, 10, 3, 1 });
	bad = build.size;
	perf_build_record(&build, 1 << 20, 0, "nothing", 8);
	add_comm(&build, 1);
	add_comm(&build, 1);
	add_comm(&build, 1);
	perf_build_aux(&build, 0, 0, "a trace", 8);
	file = perf_build_file(&build);
	tell(file, told);
	(void)snprintf(expected, sizeof(expected),
		       "file: no such type of record at offset %#zx (16 bytes left out)\n"
		       "file: 1 damaged record\n"
		       "file: 7 lost records\n",
		       bad + (size_t)load_le(file.data + DATA, 8));
	assert_string_equal(told, expected);
	perf_build_free(&build);
}

static void a_file_that_ends_too_early_is_told(void **state)
{
	struct perf_build build = { 0 };
	struct bytes file;
	char told[1024];
	uint64_t data[2];

	perf_build_pt(&build, 0, 1);
	add_comm(&build, 1);
	perf_build_aux(&build, 0, 0, "a trace", 8);
	add_comm(&build, 1);
	add_comm(&build, 1);
	file = perf_build_file(&build);
	memcpy(data, file.data + DATA, sizeof(data));
	file.size = data[0] + data[1] - 64; /* between two records */
	tell(file, told);
	assert_non_null(strstr(told, "file: cut off, 64 bytes of its records are missing\n"));
	file.size = data[0] + data[1] - 1;
	tell(file, told);
	assert_non_null(strstr(told, "file: cut off, 1 byte of its records is missing\n"));
	perf_build_free(&build);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_told_of_a_whole_recording),
		cmocka_unit_test(damage_is_told_by_its_kind),
		cmocka_unit_test(a_file_that_ends_too_early_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
