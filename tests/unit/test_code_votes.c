#include "decode/flow/code_votes.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MANY = 1000 };

/* A letter is a vote for what was Before or After, ten ns after the one before it; `-` is none, and
 * `=` has the next one at the same time. */
static void add(struct code_votes *votes, const char *letters)
{
	uint64_t time = 0;

	for (; *letters; letters++) {
		if (*letters == '=') {
			time -= 10;
			continue;
		}
		time += 10;
		if (*letters != '-')
			assert_true(code_votes_add(votes, time, *letters == 'B', MANY));
	}
}

static uint64_t since(const char *letters)
{
	struct code_votes votes = { 0 };
	uint64_t ret;

	add(&votes, letters);
	ret = code_votes_since(&votes);
	code_votes_free(&votes);
	return ret;
}

static void assert_between(const char *letters, uint64_t from, uint64_t to)
{
	struct code_votes votes = { 0 };
	uint64_t found[2];

	add(&votes, letters);
	code_votes_between(&votes, &found[0], &found[1]);
	assert_int_equal(found[0], from);
	assert_true(found[1] == to);
	code_votes_free(&votes);
}

static void most_votes_decide(void **state)
{
	assert_int_equal(since("BBBAA"), 36);
	assert_int_equal(since("B--AA"), 26);
	assert_int_equal(since("AA"), 0);
	assert_int_equal(since("BBBBBBBBBBBBBBBBABBAAAA"), 196);
	assert_int_equal(since("BBBAAAAAAAAAAAAAAAAABA"), 36);
}

static void few_or_torn_votes_say_nothing(void **state)
{
	assert_true(since("") == UINT64_MAX);
	assert_true(since("BBBB") == UINT64_MAX);
	assert_true(since("BBBA") == UINT64_MAX);
	assert_true(since("ABAB") == UINT64_MAX);
	assert_true(since("AAABBB") == UINT64_MAX);
	assert_true(since("BBABBAAAA") == UINT64_MAX);
}

static void votes_of_one_time_are_not_parted(void **state)
{
	assert_true(since("B=A=A=A") == UINT64_MAX);
	assert_int_equal(since("A=A=A"), 0);
}

static void the_change_is_between_two_votes(void **state)
{
	assert_between("BB--AA", 20, 50);
	assert_between("AA", 0, 10);
	assert_between("BB", 20, UINT64_MAX);
	assert_between("", 0, UINT64_MAX);
	assert_between("BBABBBAA", 60, 70);
}

static void every_other_vote_is_dropped_when_there_are_many(void **state)
{
	struct code_votes votes = { 0 };

	for (uint64_t i = 0; i < MANY; i++)
		assert_true(code_votes_add(&votes, i + 1, i < MANY / 2, 16));
	assert_in_range(votes.count, 8, 16);
	assert_in_range(code_votes_since(&votes), MANY / 2 - MANY / 8, MANY / 2 + MANY / 8);
	code_votes_free(&votes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(most_votes_decide),
		cmocka_unit_test(few_or_torn_votes_say_nothing),
		cmocka_unit_test(votes_of_one_time_are_not_parted),
		cmocka_unit_test(the_change_is_between_two_votes),
		cmocka_unit_test(every_other_vote_is_dropped_when_there_are_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
