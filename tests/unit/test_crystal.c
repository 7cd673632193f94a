#include "correlate/crystal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { STARTS = 200, EDGES = 600, LAST_SHIFT = 15 };

/* A crystal after a TMA with this count; the bits above 16, which a TMA does not have, are 0. */
static struct crystal crystal_at(uint16_t count, uint8_t mtc_shift)
{
	const struct pt_config config = { .mtc_shift = mtc_shift };
	struct crystal crystal;

	crystal_reset(&crystal, &config);
	crystal_tma(&crystal, count);
	return crystal;
}

static uint8_t mtc_of(int64_t count, uint8_t mtc_shift)
{
	return (uint8_t)(count >> mtc_shift);
}

/* The first count after `count` that makes an MTC. */
static int64_t edge_after(int64_t count, uint8_t mtc_shift)
{
	return ((count >> mtc_shift) + 1) << mtc_shift;
}

static void each_mtc_moves_the_count_to_its_edge(void **state)
{
	for (uint8_t shift = 0; shift <= LAST_SHIFT; shift++)
		for (int start = 0; start < STARTS; start++) {
			int64_t count = start * 327;
			struct crystal crystal = crystal_at((uint16_t)count, shift);

			for (int i = 0; i < EDGES; i++) {
				count = edge_after(count, shift);
				crystal_mtc(&crystal, mtc_of(count, shift));
				assert_int_equal(crystal.count, count);
			}
		}
}

static void lost_mtcs_are_made_good_by_the_next_within_its_bits(void **state)
{
	enum { SHIFT = 3, LOST = 250 }; /* of 256 */
	struct crystal crystal = crystal_at(5, SHIFT);
	int64_t count = edge_after(5, SHIFT) + ((int64_t)LOST << SHIFT);

	crystal_mtc(&crystal, mtc_of(count, SHIFT));
	assert_int_equal(crystal.count, count);
}

static void a_tma_tells_how_many_more_were_lost(void **state)
{
	enum { SHIFT = 3 };
	struct crystal crystal = crystal_at(5, SHIFT);
	int64_t count = edge_after(5, SHIFT) + (300 << SHIFT);

	crystal_mtc(&crystal, mtc_of(count, SHIFT)); /* after 256 periods without an MTC */
	assert_int_equal(crystal.count, count - (256 << SHIFT));
	crystal_tma(&crystal, (uint16_t)count);
	assert_int_equal(crystal.count, count);
}

static void an_mtc_that_comes_late_does_not_turn_time_back(void **state)
{
	enum { SHIFT = 3, COUNT = 1000 };
	struct crystal crystal = crystal_at(COUNT, SHIFT);

	crystal_mtc(&crystal, mtc_of(COUNT - (1 << SHIFT), SHIFT));
	assert_int_equal(crystal.count, COUNT);
	crystal_tma(&crystal, COUNT - 1);
	assert_int_equal(crystal.count, COUNT - 1);
}

static void without_a_tma_nothing_is_known(void **state)
{
	const struct pt_config config = { .mtc_shift = 200 }; /* as damage may have it */
	struct crystal crystal;

	crystal_reset(&crystal, &config);
	crystal_mtc(&crystal, 7);
	assert_false(crystal.known);
	assert_int_equal(crystal.mtc_shift, LAST_SHIFT);
	assert_int_equal(crystal.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mtc_moves_the_count_to_its_edge),
		cmocka_unit_test(lost_mtcs_are_made_good_by_the_next_within_its_bits),
		cmocka_unit_test(a_tma_tells_how_many_more_were_lost),
		cmocka_unit_test(an_mtc_that_comes_late_does_not_turn_time_back),
		cmocka_unit_test(without_a_tma_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
