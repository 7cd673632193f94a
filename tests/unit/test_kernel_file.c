#include "host/machine/kernel_file.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "tests/tree_fixture.h"

static void assert_reads(const char *content, const char *expected)
{
	char text[16];

	fake_tree_file(&tree, content, "sys/file");
	assert_int_equal(kernel_file_read(text, sizeof(text), "%s/file", tree.sys),
			 strlen(expected));
	assert_string_equal(text, expected);
}

static void a_newline_at_the_end_is_left_out(void **state)
{
	assert_reads("", "");
	assert_reads("\n", "");
	assert_reads("word", "word");
	assert_reads("word\n", "word");
	assert_reads("two\nlines\n\n", "two\nlines\n");
}

static void a_long_file_is_cut(void **state)
{
	assert_reads("123456789012345", "123456789012345");
	assert_reads("1234567890123456", "123456789012345");
	assert_reads("12345678901234\n\n", "12345678901234");
}

static void bytes_may_be_nuls(void **state)
{
	char text[8];

	fake_tree_bytes(&tree, "a\0b\0", 4, "proc/cmdline");
	assert_int_equal(kernel_file_read(text, sizeof(text), "%s/cmdline", tree.proc), 4);
	assert_memory_equal(text, "a\0b\0", 5);
}

/* The kernel gives a page of it at a time. */
static void text_that_comes_in_pieces_is_read_whole(void **state)
{
	char whole[20000], text[sizeof(whole)];
	FILE *file = fopen("/proc/kallsyms", "re");
	size_t size = file ? fread(whole, 1, sizeof(whole) - 1, file) : 0;

	if (file)
		(void)fclose(file);
	if (size < sizeof(whole) - 1)
		skip();
	whole[size] = '\0';
	if (whole[size - 1] == '\n')
		whole[--size] = '\0';
	assert_int_equal(kernel_file_read(text, sizeof(text), "/proc/kallsyms"), size);
	assert_string_equal(text, whole);
}

static void assert_unread(int code, const char *path)
{
	char text[] = "old";

	errno = 0;
	assert_int_equal(kernel_file_read(text, sizeof(text), "%s/%s", tree.sys, path), code);
	assert_string_equal(text, "");
}

static void what_cannot_be_read_is_told(void **state)
{
	char path[PATH_MAX + 1];

	fake_tree_file(&tree, "x", "sys/file");
	assert_unread(-PTVM_NOT_FOUND, "none");
	assert_unread(-PTVM_NOT_FOUND, "file/below");
	assert_unread(-PTVM_SYSTEM, ".");
	assert_int_equal(errno, EISDIR);
	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_unread(-PTVM_NOT_FOUND, path);
}

static void nobody_who_writes_is_waited_for(void **state)
{
	char path[PATH_MAX];

	fake_tree_file(&tree, "x", "sys/file");
	(void)snprintf(path, sizeof(path), "%s/fifo", tree.sys);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_unread(0, "fifo");
}

static int number(const char *content, int64_t *ret)
{
	*ret = 77;
	fake_tree_file(&tree, content, "sys/file");
	return kernel_file_number(ret, "%s/file", tree.sys);
}

static void assert_number(const char *content, int64_t expected)
{
	int64_t value;

	assert_int_equal(number(content, &value), 0);
	assert_int_equal(value, expected);
}

static void numbers_are_decimal_or_hexadecimal(void **state)
{
	assert_number("0\n", 0);
	assert_number("-29000000000\n", -29000000000);
	assert_number("0x8f\n", 0x8f);
	assert_number("0010\n", 10);
	assert_number("4096 bytes", 4096);
	assert_number("9223372036854775807", INT64_MAX);
	assert_number("-9223372036854775808", INT64_MIN);
}

static void what_is_no_number_is_refused(void **state)
{
	static const char *const contents[] = {
		"", "\n", "none", "x1", "-", "9223372036854775808"
	};
	int64_t value;

	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		assert_int_equal(number(contents[i], &value), -PTVM_BAD_INPUT);
		assert_int_equal(value, 0);
	}
	value = 77;
	assert_int_equal(kernel_file_number(&value, "%s/none", tree.sys), -PTVM_NOT_FOUND);
	assert_int_equal(value, 0);
	assert_int_equal(kernel_file_number(&value, "%s", tree.sys), -PTVM_SYSTEM);
}

static void a_link_is_told_where_it_fits(void **state)
{
	char text[8] = "old";

	fake_tree_link(&tree, "1234567", "proc/link");
	assert_int_equal(kernel_file_link(text, 8, "%s/link", tree.proc), 7);
	assert_string_equal(text, "1234567");
	assert_int_equal(kernel_file_link(text, 7, "%s/link", tree.proc), -PTVM_BAD_INPUT);
	assert_string_equal(text, "");
}

static void what_is_no_link_is_told(void **state)
{
	char text[8] = "old";

	fake_tree_file(&tree, "x", "proc/file");
	assert_int_equal(kernel_file_link(text, 8, "%s/none", tree.proc), -PTVM_NOT_FOUND);
	assert_string_equal(text, "");
	assert_int_equal(kernel_file_link(text, 8, "%s/file", tree.proc), -PTVM_SYSTEM);
	assert_int_equal(errno, EINVAL);
	(void)strcpy(text, "old");
	assert_int_equal(kernel_file_link(text, 8, "%*s", PATH_MAX, ""), -PTVM_NOT_FOUND);
	assert_string_equal(text, "");
}

static void a_file_that_we_may_read_is_readable(void **state)
{
	fake_tree_file(&tree, "x", "sys/file");
	assert_true(kernel_file_is_readable("%s/file", tree.sys));
	assert_false(kernel_file_is_readable("%s/none", tree.sys));
	assert_false(kernel_file_is_readable("%*s", PATH_MAX, ""));
}

static void a_file_of_somebody_else_is_not(void **state)
{
	char path[PATH_MAX];

	if (!geteuid())
		skip(); /* root may read it */
	fake_tree_file(&tree, "x", "sys/file");
	(void)snprintf(path, sizeof(path), "%s/file", tree.sys);
	assert_int_equal(chmod(path, 0), 0);
	assert_false(kernel_file_is_readable("%s", path));
	assert_unread(-PTVM_SYSTEM, "file");
	assert_int_equal(errno, EACCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_newline_at_the_end_is_left_out),
		TEST(a_long_file_is_cut),
		TEST(bytes_may_be_nuls),
		cmocka_unit_test(text_that_comes_in_pieces_is_read_whole),
		TEST(what_cannot_be_read_is_told),
		TEST(nobody_who_writes_is_waited_for),
		TEST(numbers_are_decimal_or_hexadecimal),
		TEST(what_is_no_number_is_refused),
		TEST(a_link_is_told_where_it_fits),
		TEST(what_is_no_link_is_told),
		TEST(a_file_that_we_may_read_is_readable),
		TEST(a_file_of_somebody_else_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
