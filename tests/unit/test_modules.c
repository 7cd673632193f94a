#include "decode/code/modules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void modules_are_read_and_sorted(void **state)
{
	const char text[] = "kvm_intel 380928 2 - Live 0xffffffffc04c7000\n"
			    "kvm 1146880 1 kvm_intel, Live 0xffffffffc03ae000 (OE)\n"
			    "hidden 4096 0 - Live 0x0000000000000000\n"
			    "short 4096 0 - Live\n"
			    "huge 99999999999999999999999999 0 - Live 0xffffffffc0000000\n"
			    "wraps 18446744073709551615 0 - Live 0xffffffffc0000000\n"
			    "irqbypass 16384 2 kvm, Live 0xffffffffc03a9000";
	struct modules modules = { 0 };

	assert_int_equal(modules_parse(text, strlen(text), &modules), 0);
	assert_int_equal(modules.count, 3);
	assert_string_equal(modules.items[0].name, "[irqbypass]");
	assert_string_equal(modules.items[1].name, "[kvm]");
	assert_true(modules.items[1].start == 0xffffffffc03ae000);
	assert_string_equal(modules.items[2].name, "[kvm_intel]");
	assert_true(modules.items[2].end == 0xffffffffc0524000);
	modules_free(&modules);
}

static void assert_load(const char *text, int expected, const char *message)
{
	char path[] = "/tmp/ptvm-modules-XXXXXX";
	struct modules modules = { 0 };
	struct ptvm_error error = { 0 };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
	assert_int_equal(modules_load(path, &modules, &error), expected);
	assert_int_equal(unlink(path), 0);
	if (message)
		assert_non_null(strstr(error.message, message));
	modules_free(&modules);
}

static void a_file_without_any_may_be_empty(void **state)
{
	assert_load("kvm 1146880 0 - Live 0xffffffffc03ae000\n", 0, NULL);
	assert_load("", 0, NULL);
	assert_load("kvm 1146880 0 - Live 0x0000000000000000\n", -PTVM_BAD_INPUT, "as root");
	assert_load("hello", -PTVM_BAD_INPUT, ": no module with an address");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_are_read_and_sorted),
		cmocka_unit_test(a_file_without_any_may_be_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
