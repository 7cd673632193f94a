#include "decode/base/mapped_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/one_file.h"

static void the_whole_file_is_mapped(void **state)
{
	static uint8_t large[3 * 4096 + 5];
	const struct one_file *one = *state;
	struct bytes file;

	memset(large, 'x', sizeof(large));
	fake_tree_bytes(&one->tree, large, sizeof(large), "file");
	assert_int_equal(mapped_file_open(one->path, &file, NULL), 0);
	assert_int_equal(file.size, sizeof(large));
	assert_memory_equal(file.data, large, sizeof(large));
	mapped_file_close(&file);
}

/* Also when the name is gone: what ran may have been replaced meanwhile. */
static void the_bytes_stay_until_it_is_closed(void **state)
{
	const struct one_file *one = *state;
	struct bytes file;
	const void *at;

	fake_tree_file(&one->tree, "bytes", "file");
	assert_int_equal(mapped_file_open(one->path, &file, NULL), 0);
	assert_int_equal(unlink(one->path), 0);
	assert_memory_equal(file.data, "bytes", 5);
	at = file.data;
	mapped_file_close(&file);
	assert_int_equal(msync((void *)at, 1, MS_ASYNC), -1); /* nothing is there */
	assert_null(file.data);
	assert_int_equal(file.size, 0);
	mapped_file_close(&file);
}

static void an_empty_file_has_no_bytes(void **state)
{
	const struct one_file *one = *state;
	struct bytes file = { (const uint8_t *)"left", 4 };

	fake_tree_file(&one->tree, "", "file");
	assert_int_equal(mapped_file_open(one->path, &file, NULL), 0);
	assert_null(file.data);
	assert_int_equal(file.size, 0);
	mapped_file_close(&file);
}

static void what_cannot_be_mapped_is_told(void **state)
{
	const struct one_file *one = *state;
	struct ptvm_error missing = { 0 }, directory = { 0 };
	struct bytes file;

	assert_int_equal(mapped_file_open(one->path, &file, &missing), -PTVM_SYSTEM);
	assert_non_null(strstr(missing.message, one->path));
	assert_int_equal(mapped_file_open(one->tree.path, &file, &directory), -PTVM_BAD_INPUT);
	assert_non_null(strstr(directory.message, one->tree.path));
}

int main(void)
{
#define WITH_FIXTURE(test)                                                                         \
	cmocka_unit_test_setup_teardown(test, one_file_set_up, one_file_tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(the_whole_file_is_mapped),
		WITH_FIXTURE(the_bytes_stay_until_it_is_closed),
		WITH_FIXTURE(an_empty_file_has_no_bytes),
		WITH_FIXTURE(what_cannot_be_mapped_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
