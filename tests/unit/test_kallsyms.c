#include "decode/code/kallsyms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int parse(char *text, struct symbols *ret)
{
	*ret = (struct symbols){ 0 };
	return kallsyms_parse(text, strlen(text), ret);
}

static void code_and_data_are_kept_the_rest_is_not(void **state)
{
	char text[] = "0000000000000000 A fixed_percpu_data\n"
		      "ffffffff81000000 T _stext\n"
		      "ffffffff81000100 t local\n"
		      "ffffffff81000200 W weak\n"
		      "ffffffff81000300 r constant\n"
		      "ffffffff81000400 D data\n"
		      "ffffffff81000500 b bss\n";
	struct symbols symbols;

	assert_int_equal(parse(text, &symbols), 0);
	assert_int_equal(symbols.count, 5);
	assert_string_equal(symbols.items[0].name, "_stext");
	assert_true(symbols.items[0].start == 0xffffffff81000000);
	assert_true(symbols.items[0].is_global && !symbols.items[0].is_weak);
	assert_true(!symbols.items[1].is_global && !symbols.items[1].is_weak);
	assert_true(symbols.items[2].is_weak && !symbols.items[2].is_global);
	symbols_free(&symbols);
}

static void a_module_is_cut_from_the_name(void **state)
{
	char text[] = "ffffffffc03ae000 t vcpu_enter_guest\t[kvm]\n";
	struct symbols symbols;

	assert_int_equal(parse(text, &symbols), 0);
	assert_string_equal(symbols.items[0].name, "vcpu_enter_guest");
	assert_string_equal(symbols.items[0].module, "[kvm]");
	symbols_free(&symbols);
}

static void lines_of_another_format_are_counted_and_skipped(void **state)
{
	char text[] = "\n"
		      "hello world\n"
		      "ffffffff81000000\n"
		      "ffffffff81000000 T\n"
		      "ffffffff81000000 T \n"
		      "11ffffffff81000000 T too_long\n"
		      "ffffffff81000000  T twice\n"
		      "ffffffff81000010 T good\n"
		      "ffffffff81000020 T cut";
	struct symbols symbols;

	assert_int_equal(parse(text, &symbols), 8);
	assert_int_equal(symbols.count, 1);
	assert_string_equal(symbols.items[0].name, "good");
	symbols_free(&symbols);
}

static void write_file(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void a_file_is_loaded_and_its_last_line_needs_no_newline(void **state)
{
	char path[] = "/tmp/test_kallsyms.XXXXXX";
	struct symbols symbols = { 0 };
	struct ptvm_error error = { 0 };

	write_file(path, "ffffffff81000010 T a\nffffffff81000020 T b");
	assert_int_equal(kallsyms_load(path, &symbols, &error), 0);
	assert_int_equal(symbols.count, 2);
	assert_string_equal(symbols_find(&symbols, 0xffffffff8100001f)->name, "a");
	symbols_free(&symbols);
	unlink(path);
}

/* kptr_restrict shows every address as zero. */
static void a_file_without_addresses_is_refused(void **state)
{
	char path[] = "/tmp/test_kallsyms.XXXXXX";
	struct symbols symbols = { 0 };
	struct ptvm_error error = { 0 };

	write_file(path, "0000000000000000 T a\n0000000000000000 T b\n");
	assert_int_equal(kallsyms_load(path, &symbols, &error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, path));
	symbols_free(&symbols);
	unlink(path);
	error = (struct ptvm_error){ 0 };
	assert_int_equal(kallsyms_load("/nowhere", &symbols, &error), -PTVM_SYSTEM);
	error = (struct ptvm_error){ 0 };
	assert_int_equal(kallsyms_load("/tmp", &symbols, &error), -PTVM_BAD_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_and_data_are_kept_the_rest_is_not),
		cmocka_unit_test(a_module_is_cut_from_the_name),
		cmocka_unit_test(lines_of_another_format_are_counted_and_skipped),
		cmocka_unit_test(a_file_is_loaded_and_its_last_line_needs_no_newline),
		cmocka_unit_test(a_file_without_addresses_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
