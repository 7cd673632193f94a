#include "correlate/offset_given.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/pt/pt_offsets.h"

static void assert_refused(const char *text)
{
	struct offsets_given given = { 0 };
	struct ptvm_error error = { 0 };

	assert_int_equal(offsets_given_parse(text, &given, &error), -PTVM_BAD_USAGE);
	assert_non_null(strstr(error.message, text));
}

static void numbers_are_as_in_c(void **state)
{
	struct offsets_given given = { 0 };

	assert_int_equal(offsets_given_parse("0xffffffffffffffff", &given, NULL), 0);
	assert_int_equal(offsets_given_parse("-17:0x2664e,12", &given, NULL), 0);
	assert_int_equal(given.count, 3);
	assert_true(given.items[0].vmcs == PT_NO_VMCS && given.items[0].offset == PT_TSC_MASK);
	assert_true(given.items[1].vmcs == 0x2664e);
	assert_true(given.items[1].offset == (((uint64_t)-17) & PT_TSC_MASK));
	assert_true(given.items[2].vmcs == 12);
}

static void what_cannot_be_meant_is_refused(void **state)
{
	static const char *const wrong[] = { "",
					     "x",
					     "1:",
					     ":1",
					     "1:2,",
					     "1:-2",
					     "1:2x",
					     "1,2",
					     "1 2",
					     "--1",
					     "+1",
					     "99999999999999999999",
					     "1:0xffffffffff" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_refused(wrong[i]);
}

static void too_many_are_refused(void **state)
{
	struct offsets_given given = { .count = GIVEN_MAX - 1 };

	assert_int_equal(offsets_given_parse("1:2,3", &given, NULL), -PTVM_BAD_USAGE);
}

static void a_name_is_better_than_none(void **state)
{
	struct vmcs_offsets guests[] = { { .vmcs = 1 }, { .vmcs = 2 } };
	struct tsc_offsets offsets = { .guests = { guests, 2, 2 } };
	struct offsets_given given = { 0 };

	assert_int_equal(offsets_given_parse("7:2", &given, NULL), 0);
	assert_int_equal(offsets_given_parse("5", &given, NULL), 0);
	assert_int_equal(offsets_given_use(&given, &offsets), 0);
	assert_int_equal(guests[0].segments.items[0].offset, 5);
	assert_int_equal(guests[1].segments.items[0].offset, 7);
	assert_int_equal(guests[1].segments.items[0].source, TSC_GIVEN);
	free(guests[0].segments.items);
	free(guests[1].segments.items);
}

/* Where that is, on which CPU, belongs to it: by both is told which thread ran the guest. */
static void the_time_in_the_first_segment_stays(void **state)
{
	struct vmcs_offsets guest = { .vmcs = 1, .first_host = 1000 };
	struct tsc_offsets offsets = { .guests = { &guest, 1, 1 } };
	struct offsets_given given = { 0 };

	assert_int_equal(offsets_given_parse("5", &given, NULL), 0);
	assert_int_equal(offsets_given_use(&given, &offsets), 0);
	assert_int_equal(guest.segments.items[0].host, 1000);
	guest.segments.items[0].host = 2000;
	assert_int_equal(offsets_given_use(&given, &offsets), 0);
	assert_int_equal(guest.segments.count, 1);
	assert_int_equal(guest.segments.items[0].host, 2000);
	free(guest.segments.items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_as_in_c),
		cmocka_unit_test(what_cannot_be_meant_is_refused),
		cmocka_unit_test(too_many_are_refused),
		cmocka_unit_test(a_name_is_better_than_none),
		cmocka_unit_test(the_time_in_the_first_segment_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
