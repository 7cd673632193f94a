#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/vm/ram_layout.h"
#include "host/vm/ram_mappings.h"

static const uint64_t mib = 1 << 20, gib = UINT64_C(1) << 30;
static const uint64_t somewhere = 0x7f0000000000;

/* Returns the number of guesses; `ret` is the one that fits with the least memory to spare. */
static size_t guess(const struct ram_mappings *mappings, const struct direct_map *map,
		    struct ram_layout *ret)
{
	struct ram_guess guess = { 0 };
	struct ram_layout layout;
	uint64_t spare, least = UINT64_MAX;
	size_t count = 0;

	memset(ret, 0, sizeof(*ret));
	for (; ram_layout_next(mappings, &guess, &layout); count++)
		if (ram_layout_fits(&layout, map, &spare) && spare < least) {
			least = spare;
			*ret = layout;
		}
	return count;
}

static struct ram_mappings one(uint64_t size)
{
	return (struct ram_mappings){ .extents = { { somewhere, somewhere + size } },
				      .extent_count = 1 };
}

static void assert_pieces(const struct ram_layout *layout, uint64_t low, uint64_t low_size,
			  uint64_t high, uint64_t high_size)
{
	assert_int_equal(layout->count, 2);
	assert_int_equal(layout->pieces[0].guest, 0);
	assert_int_equal(layout->pieces[0].address, low);
	assert_int_equal(layout->pieces[0].size, low_size);
	assert_int_equal(layout->pieces[1].guest, 4 * gib);
	assert_int_equal(layout->pieces[1].address, high);
	assert_int_equal(layout->pieces[1].size, high_size);
}

static void a_small_guest_is_in_one_piece(void **state)
{
	const struct ram_mappings mappings = one(512 * mib);
	const struct direct_map map = { 511 * mib, 0, 511 * mib };
	struct ram_layout layout;

	(void)guess(&mappings, &map, &layout);
	assert_int_equal(layout.count, 1);
	assert_int_equal(layout.pieces[0].guest, 0);
	assert_int_equal(layout.pieces[0].address, somewhere);
	assert_int_equal(layout.pieces[0].size, 512 * mib);
}

static void qemu_leaves_a_hole_in_one_piece(void **state)
{
	static const uint64_t low_ends[] = { 2048, 2816, 3072, 3584 }; /* q35, q35, pc, pc */
	const struct ram_mappings mappings = one(8 * gib);
	struct ram_layout layout;

	for (size_t i = 0; i < sizeof(low_ends) / sizeof(low_ends[0]); i++) {
		const uint64_t low = low_ends[i] * mib, high = 8 * gib - low;
		const struct direct_map map = { low - mib, 4 * gib + high, 4 * gib + high };

		(void)guess(&mappings, &map, &layout);
		assert_pieces(&layout, somewhere, low, somewhere + low, high);
	}
}

/* Firecracker: two pieces, handed out from the top down, which became one. */
static void the_high_part_may_come_first(void **state)
{
	const struct ram_mappings mappings = one(8 * gib);
	const struct direct_map map = { 3328 * mib, 8960 * mib, 8960 * mib };
	struct ram_guess next = { 0 };
	struct ram_layout layout;
	uint64_t spare;
	bool is_there = false;

	while (ram_layout_next(&mappings, &next, &layout))
		is_there |= ram_layout_fits(&layout, &map, &spare) &&
			    layout.pieces[1].address == somewhere &&
			    layout.pieces[0].address == somewhere + 8 * gib - 3328 * mib;
	assert_true(is_there);
}

static void two_pieces_are_told_apart_by_their_size(void **state)
{
	const struct ram_mappings mappings = {
		.extents = { { somewhere, somewhere + 5 * gib },
			     { somewhere + 16 * gib, somewhere + 19 * gib },
			     { somewhere + 32 * gib, somewhere + 32 * gib + 64 * mib } },
		.extent_count = 3,
	};
	const struct direct_map map = { 3 * gib, 9 * gib, 9 * gib };
	struct ram_layout layout;

	(void)guess(&mappings, &map, &layout);
	assert_pieces(&layout, somewhere + 16 * gib, 3 * gib, somewhere, 5 * gib);
}

static void ram_that_is_not_all_there_does_not_fit(void **state)
{
	const struct ram_layout layout = {
		{ { 0, somewhere, 2 * gib }, { 4 * gib, somewhere + 2 * gib, 2 * gib } }, 2
	};
	const struct ram_layout low = { { { 0, somewhere, 2 * gib } }, 1 };
	uint64_t spare;

	assert_true(ram_layout_fits(&layout, &(struct direct_map){ 2 * gib - mib, 6 * gib, 0 },
				    &spare));
	assert_int_equal(spare, mib);
	/* plugged in later, and not looked for */
	assert_true(ram_layout_fits(&layout, &(struct direct_map){ 2 * gib, 6 * gib, 99 * gib },
				    &spare));
	assert_false(ram_layout_fits(&layout, &(struct direct_map){ 2 * gib + mib, 6 * gib, 0 },
				     &spare));
	assert_false(ram_layout_fits(&layout, &(struct direct_map){ 2 * gib, 6 * gib + mib, 0 },
				     &spare));
	assert_false(ram_layout_fits(&low, &(struct direct_map){ 2 * gib, 5 * gib, 0 }, &spare));
	/* much more than the guest knows of */
	assert_false(ram_layout_fits(&layout, &(struct direct_map){ 1 * gib, 6 * gib, 0 }, &spare));
	assert_false(ram_layout_fits(&layout, &(struct direct_map){ 2 * gib, 0, 0 }, &spare));
}

static void guesses_come_to_an_end(void **state)
{
	const struct direct_map map = { 0 };
	struct ram_mappings mappings = { .extent_count = RAM_EXTENTS };
	struct ram_layout layout;

	for (size_t i = 0; i < RAM_EXTENTS; i++)
		mappings.extents[i] = (struct ram_extent){ somewhere, somewhere + 32 * mib };
	assert_int_equal(guess(&mappings, &map, &layout), RAM_EXTENTS * RAM_EXTENTS);
	mappings.extent_count = 0;
	assert_int_equal(guess(&mappings, &map, &layout), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_guest_is_in_one_piece),
		cmocka_unit_test(qemu_leaves_a_hole_in_one_piece),
		cmocka_unit_test(the_high_part_may_come_first),
		cmocka_unit_test(two_pieces_are_told_apart_by_their_size),
		cmocka_unit_test(ram_that_is_not_all_there_does_not_fit),
		cmocka_unit_test(guesses_come_to_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
