#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/machine/map_line.h"

static bool read_line(const char *text, struct map_line *ret)
{
	static char line[2 * PATH_MAX];

	(void)snprintf(line, sizeof(line), "%s", text);
	return map_line_read(line, ret);
}

static void a_line_is_read(void **state)
{
	struct map_line map;

	assert_true(read_line("5700-5900 r-xs 00000100 fd:01 42    /usr/bin/q emu\n", &map));
	assert_int_equal(map.from, 0x5700);
	assert_int_equal(map.to, 0x5900);
	assert_int_equal(map.offset, 0x100);
	assert_int_equal(map.major, 0xfd);
	assert_int_equal(map.minor, 1);
	assert_int_equal(map.inode, 42);
	assert_int_equal(map.protection, 1 | MAP_CAN_RUN);
	assert_int_equal(map.flags, 1);
	assert_string_equal(map.name, "/usr/bin/q emu");
}

static void memory_without_a_name_is_anonymous(void **state)
{
	struct map_line map;

	assert_true(read_line("6000-6100 -w-p 00000000 00:00 0 \n", &map));
	assert_string_equal(map.name, "//anon");
	assert_int_equal(map.protection, 2);
	assert_int_equal(map.flags, 2);
}

static void what_is_no_line_is_refused(void **state)
{
	char line[PATH_MAX + 100];
	struct map_line map;

	assert_false(read_line("", &map));
	assert_false(read_line("no map\n", &map));
	assert_false(read_line("7000-6000 r-xp 00000000 00:00 0 backwards\n", &map));
	(void)snprintf(line, sizeof(line), "1000-2000 r-xp 0 00:00 0 /%0*d", PATH_MAX - 1, 0);
	assert_false(read_line(line, &map));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_read),
		cmocka_unit_test(memory_without_a_name_is_anonymous),
		cmocka_unit_test(what_is_no_line_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
