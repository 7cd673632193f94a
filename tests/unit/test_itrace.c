#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/itrace.h"

static struct itrace parse(const char *text)
{
	struct itrace itrace = { 0 };
	struct ptvm_error error = { 0 };

	if (itrace_add(text, &itrace, &error))
		fail_msg("%s: %s", text, error.message);
	return itrace;
}

/* What is said of the letters behind where they went wrong. */
#define PERIOD ": i takes a number of i, t, ms, us or ns, as i10us"
#define FLAGS ": flags are small letters behind + or -, as e-o-l"
#define SIZE ": g, l, G and L take a number from 1 to 1024"
#define SKIP ": s takes a number, as s100"
#define LETTERS ": the letters are i b c r e p w x I s g l G L q A Z"

static void refuse(const char *text, const char *message)
{
	struct itrace itrace, before;
	struct ptvm_error error = { 0 };

	memset(&itrace, 0x5a, sizeof(itrace));
	before = itrace;
	if (itrace_add(text, &itrace, &error) != -PTVM_BAD_USAGE)
		fail_msg("%s was accepted", text);
	assert_memory_equal(&itrace, &before, sizeof(itrace));
	assert_string_equal(error.message, message);
}

static void assert_period(const char *text, unsigned unit, uint64_t period)
{
	struct itrace itrace = parse(text);

	assert_true(itrace.instructions);
	assert_int_equal(itrace.period_unit, unit);
	assert_int_equal(itrace.period, period);
}

static void no_letters_are_the_default(void **state)
{
	static const char *const texts[] = { "", " ", ",, " };

	for (size_t i = 0; i < 3; i++) {
		struct itrace itrace = parse(texts[i]);

		assert_true(itrace.branches && itrace.calls && itrace.errors && itrace.power);
		assert_true(itrace.transactions && itrace.ptwrites && itrace.interrupts);
		assert_true(itrace.error_overflow && itrace.error_lost);
		assert_false(itrace.instructions || itrace.returns);
	}
}

static unsigned count_kinds(const char *text)
{
	struct itrace itrace = parse(text);

	return itrace.instructions + itrace.branches + itrace.calls + itrace.returns +
	       itrace.transactions + itrace.ptwrites + itrace.power + itrace.interrupts +
	       itrace.errors + itrace.approximate_ipc + itrace.timeless + itrace.pebs +
	       itrace.quick;
}

static void each_letter_sets_its_kind_alone(void **state)
{
	static const char *const letters[] = {
		"b", "x", "w", "p", "I", "A", "Z", "q", "i", "e", "o"
	};

	for (size_t i = 0; i < 11; i++)
		assert_int_equal(count_kinds(letters[i]), 1);
	assert_true(parse("b").branches);
	assert_true(parse("x").transactions);
	assert_true(parse("w").ptwrites);
	assert_true(parse("p").power);
	assert_true(parse("I").interrupts);
	assert_true(parse("A").approximate_ipc);
	assert_true(parse("Z").timeless);
	assert_true(parse("o").pebs);
	assert_int_equal(parse("qq").quick, 2);
	assert_false(parse("b").error_overflow || parse("b").error_lost);
}

static void calls_and_returns_are_branches(void **state)
{
	struct itrace calls = parse("c"), returns = parse("r"), both = parse("bcr");

	assert_true(calls.branches && calls.calls && !calls.returns);
	assert_true(returns.branches && returns.returns && !returns.calls);
	assert_true(both.branches && both.calls && both.returns);
}

static void call_chains_and_last_branches_have_a_size(void **state)
{
	assert_int_equal(parse("i1000i").chain, 0);
	assert_int_equal(parse("i1000ig").chain, 16);
	assert_int_equal(parse("i1000ig3").chain, 3);
	assert_int_equal(parse("ig 1024").chain, 1024);
	assert_int_equal(parse("i1000i").last_branches, 0);
	assert_int_equal(parse("i1000il").last_branches, 64);
	assert_int_equal(parse("i10igl,5").last_branches, 5);
	assert_int_equal(parse("i10igl,5").chain, 16);
	assert_int_equal(parse("igl").samples.calls + parse("igl").samples.branches, 0);
	assert_int_equal(parse("GL").samples.calls, 16);
	assert_int_equal(parse("GL").samples.branches, 64);
	assert_int_equal(parse("G3L1024").samples.calls, 3);
	assert_int_equal(parse("G3L1024").samples.branches, 1024);
	assert_int_equal(parse("GL").chain + parse("GL").last_branches, 0);
	refuse("g0", "--itrace at 'g0'" SIZE);
	refuse("G0", "--itrace at 'G0'" SIZE);
	refuse("L1025", "--itrace at 'L1025'" SIZE);
	refuse("ig1025b", "--itrace at 'g1025b'" SIZE);
	refuse("l99999999999999999999", "--itrace at 'l99999999999999999999'" SIZE);
}

static void instructions_have_a_period(void **state)
{
	assert_period("i", PERIOD_NS, 100000);
	assert_period("ib", PERIOD_NS, 100000);
	assert_period("i10", PERIOD_NS, 10);
	assert_period("i1i", PERIOD_INSNS, 1);
	assert_period("i7t", PERIOD_TICKS, 7);
	assert_period("i7ns", PERIOD_NS, 7);
	assert_period("i7us", PERIOD_NS, 7000);
	assert_period("bi7msb", PERIOD_NS, 7000000);
	assert_period("i, 10 ,us", PERIOD_NS, 10000);
	assert_period("i18446744073709551615ns", PERIOD_NS, UINT64_MAX);
}

static void a_second_period_keeps_a_unit_it_does_not_name(void **state)
{
	assert_period("i5ii7", PERIOD_INSNS, 7);
	assert_period("i5ti", PERIOD_TICKS, 5);
}

static void a_period_of_nothing_is_every_instruction(void **state)
{
	assert_period("i0ns", PERIOD_NS, 0);
	assert_period("i0", PERIOD_NS, 0);
	assert_period("i0i", PERIOD_NS, 0);
	assert_period("i0t", PERIOD_NS, 0);
}

static void letters_follow_a_period_at_once(void **state)
{
	struct itrace itrace = parse("i0nss1000000e");

	assert_true(itrace.instructions && itrace.errors);
	assert_int_equal(itrace.skip, 1000000);
	assert_int_equal(parse("s 5").skip, 5);
}

static void a_bad_period_is_refused(void **state)
{
	refuse("i1s", "--itrace at 'i1s'" PERIOD);
	refuse("bi1m", "--itrace at 'i1m'" PERIOD);
	refuse("i1u", "--itrace at 'i1u'" PERIOD);
	refuse("i10,b", "--itrace at 'i10,b'" PERIOD);
	refuse("i0x10", "--itrace at 'i0x10'" PERIOD);
	refuse("i18446744073709551616ns", "--itrace at 'i18446744073709551616ns'" PERIOD);
	refuse("i18446744073709551615us", "--itrace at 'i18446744073709551615us'" PERIOD);
}

static void error_flags_leave_errors_out(void **state)
{
	struct itrace all = parse("e"), no_overflow = parse("e-o"), neither = parse("e-o-l");

	assert_true(all.errors && all.error_overflow && all.error_lost);
	assert_true(no_overflow.errors && !no_overflow.error_overflow && no_overflow.error_lost);
	assert_true(neither.errors && !neither.error_overflow && !neither.error_lost);
	assert_true(parse("e+l+o").error_lost);
	assert_true(parse("e-q").error_lost);
	assert_false(parse("e - l b").error_lost);
	assert_true(parse("e - l b").branches);
	assert_false(parse("e-l+l").error_lost);
	assert_false(parse("e-le").error_lost);
	assert_false(parse("ee-l").error_lost);
}

static void the_flags_of_d_are_not_those_of_e(void **state)
{
	struct itrace itrace = parse("ed-o+a");

	assert_true(itrace.error_overflow && itrace.error_lost);
}

static void a_bad_flag_is_refused(void **state)
{
	refuse("e-", "--itrace at 'e-'" FLAGS);
	refuse("be-O", "--itrace at 'e-O'" FLAGS);
	refuse("e-,o", "--itrace at 'e-,o'" FLAGS);
	refuse("d+", "--itrace at 'd+'" FLAGS);
	refuse("b-o", "--itrace at '-o'" LETTERS);
}

static void a_skip_needs_a_number(void **state)
{
	refuse("s", "--itrace at 's'" SKIP);
	refuse("s-5", "--itrace at 's-5'" SKIP);
	refuse("s,5", "--itrace at 's,5'" SKIP);
	refuse("s18446744073709551616", "--itrace at 's18446744073709551616'" SKIP);
}

static void letters_of_other_hardware_mean_nothing(void **state)
{
	struct itrace itrace = parse("fmMtad");

	assert_false(itrace.branches || itrace.instructions || itrace.errors);
}

static void letters_that_do_not_exist_are_refused(void **state)
{
	refuse("bE", "--itrace at 'E'" LETTERS);
	refuse("1", "--itrace at '1'" LETTERS);
	refuse("iybxwpe", "--itrace at 'ybxwpe'" LETTERS);
	refuse("b\xff", "--itrace at '\xff'" LETTERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_letters_are_the_default),
		cmocka_unit_test(each_letter_sets_its_kind_alone),
		cmocka_unit_test(calls_and_returns_are_branches),
		cmocka_unit_test(call_chains_and_last_branches_have_a_size),
		cmocka_unit_test(instructions_have_a_period),
		cmocka_unit_test(a_second_period_keeps_a_unit_it_does_not_name),
		cmocka_unit_test(a_period_of_nothing_is_every_instruction),
		cmocka_unit_test(letters_follow_a_period_at_once),
		cmocka_unit_test(a_bad_period_is_refused),
		cmocka_unit_test(error_flags_leave_errors_out),
		cmocka_unit_test(the_flags_of_d_are_not_those_of_e),
		cmocka_unit_test(a_bad_flag_is_refused),
		cmocka_unit_test(a_skip_needs_a_number),
		cmocka_unit_test(letters_of_other_hardware_mean_nothing),
		cmocka_unit_test(letters_that_do_not_exist_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
