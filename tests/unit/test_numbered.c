#include "decode/base/numbered.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/fake_tree.h"

static void a_number_ends_a_name(void **state)
{
	int number = -1;

	assert_true(numbered_read("vcpu12", "vcpu", &number));
	assert_int_equal(number, 12);
	assert_true(numbered_read("0", "", &number));
	assert_int_equal(number, 0);
	assert_true(numbered_read("2147483647", "", &number));
	assert_int_equal(number, INT_MAX);
}

static void other_names_are_refused(void **state)
{
	static const char *const names[] = {
		"",        "vcpu", "vcpu1x",         "vcpu-1",
		"vcpu +1", "cpu1", "vcpu2147483648", "vcpu99999999999999999999"
	};
	int number = 7;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(numbered_read(names[i], "vcpu", &number));
	assert_int_equal(number, 7);
}

static void files_of_such_names_are_found(void **state)
{
	struct numbered_files files;
	struct fake_tree tree;
	int number, sum = 0;

	fake_tree_init(&tree);
	fake_tree_file(&tree, "", "dir/kcore_dir");
	fake_tree_file(&tree, "", "dir/kcore_dir__7");
	fake_tree_file(&tree, "", "dir/kcore_dir__20/kcore");
	files = numbered_files_open(fake_tree_path(&tree, "dir"), "kcore_dir__");
	while (numbered_files_next(&files, &number))
		sum += number;
	assert_int_equal(sum, 27);
	numbered_files_close(&files);
	fake_tree_deinit(&tree);
}

static void no_directory_has_no_files(void **state)
{
	struct numbered_files files = numbered_files_open("/nonexistent", "");
	int number;

	assert_int_equal(errno, ENOENT);
	assert_null(files.directory);
	assert_false(numbered_files_next(&files, &number));
	numbered_files_close(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_ends_a_name),
		cmocka_unit_test(other_names_are_refused),
		cmocka_unit_test(files_of_such_names_are_found),
		cmocka_unit_test(no_directory_has_no_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
