#include "decode/code/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"

static const uint8_t a[16] = "aaaaaaaaaaaaaaa", b[16] = "bbbbbbbbbbbbbbb";

/* The byte at an address, '-' where there is none. */
static char at(const struct image *image, uint64_t address)
{
	size_t left = 0;
	const uint8_t *p = image_find(image, address, &left);

	assert_true(!p || left > 0);
	return p ? (char)*p : '-';
}

static void what_was_added_is_found_and_nothing_else(void **state)
{
	struct image image = { 0 };
	size_t left;

	assert_int_equal(image_add(&image, 100, a, 10), 0);
	assert_int_equal(at(&image, 99), '-');
	assert_ptr_equal(image_find(&image, 103, &left), a + 3);
	assert_int_equal(left, 7);
	assert_int_equal(at(&image, 110), '-');
	image_free(&image);
}

static void a_later_piece_replaces_the_middle_of_an_earlier_one(void **state)
{
	struct image image = { 0 };
	size_t left;

	assert_int_equal(image_add(&image, 100, a, 15), 0);
	assert_int_equal(image_add(&image, 105, b, 3), 0);
	assert_int_equal(image.count, 3);
	assert_ptr_equal(image_find(&image, 102, &left), a + 2);
	assert_int_equal(left, 3);
	assert_ptr_equal(image_find(&image, 105, &left), b);
	assert_ptr_equal(image_find(&image, 108, &left), a + 8);
	assert_int_equal(left, 7);
	image_free(&image);
}

static void a_later_piece_swallows_smaller_ones(void **state)
{
	struct image image = { 0 };

	for (uint64_t i = 0; i < 40; i++)
		assert_int_equal(image_add(&image, 1000 - 10 * i, a, 4), 0);
	assert_int_equal(image.count, 40);
	assert_int_equal(image_add(&image, 902, b, 10), 0);
	assert_int_equal(image.count, 41);
	assert_int_equal(at(&image, 901), 'a');
	assert_int_equal(at(&image, 902), 'b');
	assert_int_equal(at(&image, 911), 'b');
	assert_int_equal(at(&image, 912), 'a');
	assert_int_equal(at(&image, 914), '-');
	image_free(&image);
}

static void the_last_byte_of_the_address_space_can_be_code(void **state)
{
	struct image image = { 0 };
	size_t left;

	assert_int_equal(image_add(&image, UINT64_MAX - 3, a, 4), 0);
	assert_ptr_equal(image_find(&image, UINT64_MAX, &left), a + 3);
	assert_int_equal(left, 1);
	image_free(&image);
}

static void what_wraps_or_is_empty_is_refused(void **state)
{
	struct image image = { 0 };

	assert_int_equal(image_add(&image, UINT64_MAX - 3, a, 5), -PTVM_BAD_INPUT);
	assert_int_equal(image_add(&image, 100, a, 0), -PTVM_BAD_INPUT);
	assert_int_equal(image.count, 0);
	image_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_is_found_and_nothing_else),
		cmocka_unit_test(a_later_piece_replaces_the_middle_of_an_earlier_one),
		cmocka_unit_test(a_later_piece_swallows_smaller_ones),
		cmocka_unit_test(the_last_byte_of_the_address_space_can_be_code),
		cmocka_unit_test(what_wraps_or_is_empty_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
