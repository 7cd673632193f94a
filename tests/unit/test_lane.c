#include "decode/print/lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { JOBS = 5 };

/* A lane with jobs 0 to 4, which is all that its functions look at. */
struct fixture {
	struct lane lane;
	struct job *jobs[JOBS];
};

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ 0 };
	for (unsigned i = 0; i < JOBS; i++) {
		struct job *job = calloc(1, sizeof(*job));

		assert_non_null(job);
		job->segment.from = 100 * i;
		lane_add(&fixture.lane, job);
		fixture.jobs[i] = job;
	}
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	while (f->lane.first)
		lane_drop_first(&f->lane);
	assert_int_equal(f->lane.jobs, 0);
	assert_null(f->lane.last);
	return 0;
}

/* The next job that waits has this number, and a thread runs it from now on. */
static void assert_takes(struct fixture *f, unsigned number)
{
	assert_ptr_equal(lane_take(&f->lane), f->jobs[number]);
}

static void jobs_wait_in_order(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(f->lane.jobs, JOBS);
	assert_int_equal(f->lane.waiting_jobs, JOBS);
	for (unsigned i = 0; i < JOBS; i++)
		assert_takes(f, i);
	assert_int_equal(f->lane.waiting_jobs, 0);
	assert_null(f->lane.waiting);
	assert_int_equal(f->lane.jobs, JOBS);
}

static void a_job_waits_again_where_it_was(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 4; i++)
		assert_takes(f, i);
	lane_wait(&f->lane, f->jobs[2]);
	lane_wait(&f->lane, f->jobs[0]);
	lane_wait(&f->lane, f->jobs[3]);
	assert_int_equal(f->lane.waiting_jobs, 4);
	assert_takes(f, 0);
	assert_takes(f, 2);
	assert_takes(f, 3);
	assert_takes(f, 4);
}

static void the_last_job_waits_again(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < JOBS; i++)
		assert_takes(f, i);
	lane_wait(&f->lane, f->jobs[1]);
	lane_wait(&f->lane, f->jobs[4]);
	assert_takes(f, 1);
	assert_takes(f, 4);
	assert_null(f->lane.waiting);
	lane_wait(&f->lane, f->jobs[3]);
	assert_takes(f, 3);
}

static void jobs_are_dropped_in_order(void **state)
{
	struct fixture *f = *state;

	assert_takes(f, 0);
	lane_drop_first(&f->lane);
	assert_ptr_equal(f->lane.first, f->jobs[1]);
	assert_ptr_equal(f->lane.waiting, f->jobs[1]);
	assert_int_equal(f->lane.jobs, JOBS - 1);
	for (unsigned i = 1; i < JOBS; i++) {
		assert_takes(f, i);
		lane_drop_first(&f->lane);
	}
	assert_null(f->lane.first);
	assert_null(f->lane.last);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(jobs_wait_in_order),
		TEST(a_job_waits_again_where_it_was),
		TEST(the_last_job_waits_again),
		TEST(jobs_are_dropped_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
