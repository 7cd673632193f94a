#include "decode/print/insn_period.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct insn_period begin(int unit, uint64_t length)
{
	/* 2 ns a tick */
	const struct pt_config config = { .conv = { .valid = true, .mult = 2 } };
	struct itrace itrace = { .period = length };
	struct insn_period period;

	itrace.period_unit = unit;
	insn_period_init(&period, &itrace, &config);
	return period;
}

static void every_instruction_has_a_line(void **state)
{
	const int units[] = { PERIOD_INSNS, PERIOD_NS };

	for (uint64_t i = 0; i < 2; i++) {
		struct insn_period period = begin(units[i], !i);

		assert_int_equal(insn_period_pass(&period, 7, 9), 0);
		assert_int_equal(insn_period_count(&period, 7), 1);
		assert_int_equal(insn_period_count(&period, 7), 1);
	}
}

static void every_third_stands_for_three(void **state)
{
	struct insn_period period = begin(PERIOD_INSNS, 3);

	assert_int_equal(insn_period_count(&period, 0), 0);
	assert_int_equal(insn_period_pass(&period, 0, 9), 1);
	assert_int_equal(insn_period_pass(&period, 0, 9), 0);
	assert_int_equal(insn_period_count(&period, 0), 3);
	assert_int_equal(insn_period_pass(&period, 0, 1), 1);
}

/* A period of 16 ticks: 38 ns are 19 ticks, and less is a power of two. */
static void a_line_is_due_when_time_comes_to_a_multiple(void **state)
{
	struct insn_period period = begin(PERIOD_NS, 38);
	unsigned passed;

	assert_int_equal(period.ticks, 16);
	assert_int_equal(insn_period_count(&period, 100), 0); /* tracing is on from here */
	passed = insn_period_pass(&period, 100, 1000);
	assert_in_range(passed, 1, 12);
	for (unsigned i = passed + 1; i < 11; i++)
		assert_int_equal(insn_period_count(&period, 100), 0);
	assert_int_equal(insn_period_count(&period, 100), 12); /* at 112 */
	insn_period_new_time(&period);
	assert_int_equal(insn_period_count(&period, 113), 0);
	insn_period_new_time(&period);
	assert_int_equal(insn_period_count(&period, 160), 2);
}

static void a_period_that_began_meanwhile_is_not_due(void **state)
{
	struct insn_period period = begin(PERIOD_TICKS, 16);

	assert_int_equal(insn_period_count(&period, 100), 0);
	insn_period_stop(&period);
	insn_period_new_time(&period);
	assert_int_equal(insn_period_count(&period, 500), 0);
	insn_period_new_time(&period);
	assert_int_equal(insn_period_count(&period, 512), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction_has_a_line),
		cmocka_unit_test(every_third_stands_for_three),
		cmocka_unit_test(a_line_is_due_when_time_comes_to_a_multiple),
		cmocka_unit_test(a_period_that_began_meanwhile_is_not_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
