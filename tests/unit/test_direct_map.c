#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/direct_map.h"
#include "guest/vmcoreinfo.h"
#include "tests/fake_linux.h"

static const uint64_t base = 0xffff888000000000, gib = UINT64_C(1) << 30;

struct fixture {
	struct fake_linux guest;
	struct vmcoreinfo info;
	struct direct_map map;
};

static char five_levels[] = "page tables have 5 levels";

/* The guest's page tables have 5 levels where the test's initial state is `five_levels`. */
static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fake_linux_init(&fixture->guest, *state != NULL);
	assert_true(vmcoreinfo_read(fixture->guest.vmcoreinfo, &fixture->info));
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	fake_linux_deinit(&fixture->guest);
	free(fixture);
	return 0;
}

static int read_map(struct fixture *fixture)
{
	return direct_map_read(&fixture->guest.memory.reader, &fixture->info, &fixture->map, NULL);
}

/* Map a GiB of RAM at once, whether it is there or not. */
static void map_gib(struct fixture *fixture, uint64_t physical)
{
	*fake_memory_entry(&fixture->guest.memory, base + physical, 3) =
		physical | FAKE_MEMORY_LARGE | 1;
}

static void a_kernel_tells_how_much_ram_there_is(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(read_map(fixture), 0);
	assert_int_equal(fixture->map.low_end, FAKE_LINUX_RAM_BYTES);
	assert_int_equal(fixture->map.high_end, 0);
	assert_int_equal(fixture->map.end, FAKE_LINUX_RAM_BYTES);
}

static void ram_goes_on_above_the_hole_for_devices(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t at = 0; at < 9; at += at == 1 ? 3 : 1)
		map_gib(fixture, at * gib);
	assert_int_equal(read_map(fixture), 0);
	assert_int_equal(fixture->map.low_end, 2 * gib);
	assert_int_equal(fixture->map.high_end, 9 * gib);
	assert_int_equal(fixture->map.end, 9 * gib);
}

static void what_was_plugged_in_is_told_apart(void **state)
{
	struct fixture *fixture = *state;

	map_gib(fixture, 4 * gib);
	map_gib(fixture, 64 * gib);
	assert_int_equal(read_map(fixture), 0);
	assert_int_equal(fixture->map.high_end, 5 * gib);
	assert_int_equal(fixture->map.end, 65 * gib);
}

/* Other things are mapped behind it in the kernel's half. */
static void it_ends_where_addresses_are_others(void **state)
{
	struct fixture *fixture = *state;

	*fake_memory_entry(&fixture->guest.memory, base + 2048 * gib, 3) =
		7 * gib | FAKE_MEMORY_LARGE | 1;
	assert_int_equal(read_map(fixture), 0);
	assert_int_equal(fixture->map.end, FAKE_LINUX_RAM_BYTES);
}

static void without_such_a_map_there_is_no_kernel(void **state)
{
	struct fixture *fixture = *state;
	uint64_t *first = fake_memory_entry(&fixture->guest.memory, base, 2);

	*first = 4 << 20 | FAKE_MEMORY_LARGE | 1; /* maps another physical address there */
	assert_int_equal(read_map(fixture), -PTVM_NOT_FOUND);
	*fake_memory_entry(&fixture->guest.memory, base, 4) = 0;
	assert_int_equal(read_map(fixture), -PTVM_NOT_FOUND);
}

static void tables_that_are_nowhere_are_no_hole_in_ram(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(read_map(fixture), 0);
	*fake_memory_entry(&fixture->guest.memory, base + 4 * gib, 3) = 4 * gib | 1;
	assert_int_equal(read_map(fixture), -PTVM_NOT_FOUND);
}

static void tables_that_are_elsewhere_are_not_those(void **state)
{
	struct fixture *fixture = *state;

	fixture->info.root.cr3 += FAKE_MEMORY_PAGE; /* the tables of user mode */
	assert_int_equal(read_map(fixture), -PTVM_NOT_FOUND);
	fixture->info.root.cr3 = UINT64_C(1) << 40; /* no memory */
	assert_int_equal(read_map(fixture), -PTVM_NOT_FOUND);
}

static void a_kernel_of_another_name_is_another(void **state)
{
	struct fixture *fixture = *state;

	(void)strcpy(fixture->info.release, "6.1.0-fak"); /* to the last byte */
	assert_int_equal(read_map(fixture), -PTVM_NOT_FOUND);
}

static void memory_that_fails_is_told(void **state)
{
	struct fixture *fixture = *state;

	fixture->guest.memory.fails = true;
	assert_int_equal(read_map(fixture), -PTVM_SYSTEM);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define TEST_5_LEVELS(test)                                                                        \
	cmocka_unit_test_prestate_setup_teardown(test, set_up, tear_down, five_levels)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kernel_tells_how_much_ram_there_is),
		TEST_5_LEVELS(a_kernel_tells_how_much_ram_there_is),
		TEST(ram_goes_on_above_the_hole_for_devices),
		TEST(what_was_plugged_in_is_told_apart),
		TEST(it_ends_where_addresses_are_others),
		TEST(without_such_a_map_there_is_no_kernel),
		TEST(tables_that_are_nowhere_are_no_hole_in_ram),
		TEST(tables_that_are_elsewhere_are_not_those),
		TEST(a_kernel_of_another_name_is_another),
		TEST(memory_that_fails_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
