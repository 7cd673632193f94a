/* timeline: chunks of several queues become one text in order of time. */
#include "decode/print/timeline.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/sim_random.h"

enum { LANES = 3 };

struct fixture {
	struct print_config print;
	struct timeline_output output;
	struct timeline timeline;
	struct ptvm_error error;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->output.fd = memfd_create("lines", MFD_CLOEXEC);
	assert_true(fixture->output.fd >= 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	timeline_free(&fixture->timeline);
	(void)close(fixture->output.fd);
	free(fixture);
	return 0;
}

static void begin(struct fixture *fixture)
{
	assert_int_equal(
		timeline_init(&fixture->timeline, LANES, &fixture->print, &fixture->output), 0);
	fixture->timeline.lane_count = LANES;
}

/* A chunk of lines, each the time of its run in one digit and the lane; `times` like "112". */
static void add(struct fixture *fixture, unsigned lane, const char *times)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));

	assert_non_null(chunk);
	for (const char *p = times; *p; p++) {
		if (fixture->print.relative_time)
			text_putc(&chunk->text, TIME_COLUMN_MARK);
		text_putc(&chunk->text, *p);
		text_putc(&chunk->text, (char)('a' + lane));
		text_putc(&chunk->text, '\n');
		if (p[1] != *p)
			assert_true(vec_push(&chunk->runs, (struct print_run){ (uint64_t)(*p - '0'),
									       chunk->text.size }));
	}
	chunk_list_push(&fixture->timeline.lanes[lane].chunks, chunk);
}

static void end(struct fixture *fixture)
{
	for (unsigned i = 0; i < LANES; i++)
		fixture->timeline.lanes[i].ended = true;
}

static void assert_written(struct fixture *fixture, const char *expected)
{
	char found[4096] = "";
	ssize_t size;

	assert_int_equal(timeline_write(&fixture->timeline, &fixture->error), 0);
	size = pread(fixture->output.fd, found, sizeof(found) - 1, 0);
	assert_true(size >= 0);
	for (char *p = found; (p = strchr(p, '\n'));)
		*p = ' ';
	assert_string_equal(found, expected);
}

static void lines_are_in_order_of_time_and_then_of_lanes(void **state)
{
	begin(*state);
	add(*state, 0, "113");
	add(*state, 1, "1223");
	add(*state, 2, "0134");
	end(*state);
	assert_written(*state, "0c 1a 1a 1b 1c 2b 2b 3a 3b 3c 4c ");
}

/* Chunks of one line come for one lane or the other, in order of time in each. */
static void lines_of_many_lanes_come_in_order_however_they_arrive(void **state)
{
	enum { MANY = 9, ROUNDS = 400, TIMES = 10 };
	struct fixture *fixture = *state;
	struct sim_random random = { 3 };
	unsigned times[MANY] = { 0 }, counts[TIMES][MANY] = { 0 };
	char expected[3 * ROUNDS + 1] = "", *p = expected;

	assert_int_equal(timeline_init(&fixture->timeline, MANY, &fixture->print, &fixture->output),
			 0);
	fixture->timeline.lane_count = MANY;
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned lane = (unsigned)sim_random_below(&random, MANY);

		times[lane] += times[lane] + 1 < TIMES && sim_random_once_in(&random, 4);
		counts[times[lane]][lane]++;
		add(fixture, lane, (char[]){ (char)('0' + times[lane]), 0 });
		assert_int_equal(timeline_write(&fixture->timeline, &fixture->error), 0);
	}
	for (unsigned i = 0; i < MANY; i++) {
		fixture->timeline.lanes[i].ended = true;
		assert_int_equal(timeline_write(&fixture->timeline, &fixture->error), 0);
	}
	for (unsigned i = 0; i < TIMES * MANY; i++)
		for (unsigned n = counts[i / MANY][i % MANY]; n--;)
			p += sprintf(p, "%u%c ", i / MANY, 'a' + i % MANY);
	assert_written(fixture, expected);
}

/* A queue that is idle must not be decoded ahead of its time. */
static void lines_do_not_wait_for_those_that_come_later(void **state)
{
	struct fixture *fixture = *state;
	struct timeline *timeline = &fixture->timeline;

	begin(fixture);
	add(fixture, 0, "124");
	timeline->lanes[1].from_ns = 3;
	timeline->lanes[2].ended = true;
	assert_true(timeline_is_ready(timeline));
	assert_null(timeline_missed(timeline));
	assert_written(fixture, "1a 2a ");
	assert_false(timeline_is_ready(timeline));
	assert_ptr_equal(timeline_missed(timeline), &timeline->lanes[1]);
	timeline->lanes[1].from_ns = 5;
	assert_written(fixture, "1a 2a 4a ");
	add(fixture, 1, "6");
	assert_written(fixture, "1a 2a 4a ");
	assert_ptr_equal(timeline_missed(timeline), &timeline->lanes[0]);
	end(fixture);
	assert_written(fixture, "1a 2a 4a 6b ");
	assert_null(timeline_missed(timeline));
}

static void lines_wait_for_those_that_may_come_before(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture);
	add(fixture, 0, "12");
	add(fixture, 2, "1");
	assert_false(timeline_is_ready(&fixture->timeline));
	assert_written(fixture, "");
	add(fixture, 1, "2");
	assert_true(timeline_is_ready(&fixture->timeline));
	assert_written(fixture, "1a 1c ");
	add(fixture, 2, "2");
	assert_written(fixture, "1a 1c 2a ");
	fixture->timeline.lanes[0].ended = true;
	assert_written(fixture, "1a 1c 2a 2b ");
	end(fixture);
	assert_written(fixture, "1a 1c 2a 2b 2c ");
	assert_false(timeline_is_ready(&fixture->timeline));
}

static void where_chunks_end_does_not_matter(void **state)
{
	begin(*state);
	add(*state, 0, "1");
	add(*state, 0, "1");
	add(*state, 0, "13");
	add(*state, 1, "123");
	add(*state, 1, "34");
	end(*state);
	assert_written(*state, "1a 1a 1a 1b 2b 3a 3b 3b 4b ");
}

/* The origin of a sample lies in a lane between lines, but is no line. */
static void what_led_to_samples_is_no_line(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture);
	add(fixture, 0, "12");
	add(fixture, 0, "3");
	add(fixture, 0, "345");
	add(fixture, 1, "35");
	fixture->timeline.lanes[0].chunks.first->runs.items[1].record = 7;
	fixture->timeline.lanes[0].chunks.first->next->runs.items[0].record = 8;
	fixture->timeline.lanes[0].chunks.last->runs.items[1].record = 9;
	end(fixture);
	assert_written(fixture, "1a 3a 3b 5a 5b ");
}

static void chunks_that_are_written_are_given_back(void **state)
{
	struct fixture *fixture = *state;
	unsigned count = 0;

	begin(fixture);
	add(fixture, 0, "1");
	add(fixture, 0, "2");
	add(fixture, 1, "15");
	fixture->timeline.lanes[2].ended = true;
	assert_written(fixture, "1a 1b 2a ");
	for (struct chunk *chunk = fixture->timeline.done.first; chunk; chunk = chunk->next)
		count++;
	assert_int_equal(count, 2);
	assert_non_null(fixture->timeline.lanes[1].chunks.first);
}

static void a_limit_ends_it(void **state)
{
	struct fixture *fixture = *state;

	fixture->output.max_lines = 3;
	begin(fixture);
	add(fixture, 0, "114");
	add(fixture, 1, "2223");
	end(fixture);
	assert_written(fixture, "1a 1a 2b ");
	assert_true(fixture->timeline.full);
	assert_int_equal(fixture->timeline.lines, 3);
}

static void relative_times_are_filled_in(void **state)
{
	struct fixture *fixture = *state;

	fixture->print.relative_time = fixture->print.nanoseconds = true;
	begin(fixture);
	add(fixture, 0, "23");
	add(fixture, 1, "24");
	end(fixture);
	assert_written(fixture, "    0.000000000: 2a     0.000000000: 2b     0.000000001: 3a "
				"    0.000000002: 4b ");
}

/* What is sent at once is received at once. */
static void lines_that_are_made_on_the_way_go_out_together(void **state)
{
	struct fixture *fixture = *state;
	char found[256];
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	(void)close(fixture->output.fd);
	fixture->output.fd = ends[0];
	fixture->print.relative_time = true;
	begin(fixture);
	add(fixture, 0, "1234");
	end(fixture);
	assert_int_equal(timeline_write(&fixture->timeline, &fixture->error), 0);
	assert_int_equal(recv(ends[1], found, sizeof(found), MSG_DONTWAIT),
			 4 * strlen("    0.000000: 1a\n"));
	assert_int_equal(recv(ends[1], found, sizeof(found), MSG_DONTWAIT), -1);
	(void)close(ends[1]);
}

/* The buffer has room for some of the lines only, or not even for one. */
static void lines_that_are_made_on_the_way_may_be_many(void **state)
{
	struct fixture *fixture = *state;
	const size_t sizes[] = { 40000, 40000, 1, 200000, 7, 65536, 30000, 35000, 1000 };
	const size_t count = sizeof(sizes) / sizeof(sizes[0]);
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	char *expected, *found;
	size_t size = 0;

	assert_non_null(chunk);
	fixture->print.relative_time = true;
	begin(fixture);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < sizes[i]; k++)
			text_putc(&chunk->text, (char)('a' + i));
		assert_true(vec_push(&chunk->runs, (struct print_run){ i, chunk->text.size }));
		size += sizes[i];
	}
	expected = malloc(size);
	found = malloc(size);
	assert_true(expected && found);
	memcpy(expected, chunk->text.data, size);
	chunk_list_push(&fixture->timeline.lanes[0].chunks, chunk);
	end(fixture);
	assert_int_equal(timeline_write(&fixture->timeline, &fixture->error), 0);
	assert_int_equal(pread(fixture->output.fd, found, size, 0), size);
	assert_memory_equal(found, expected, size);
	free(expected);
	free(found);
}

static void an_error_is_told(void **state)
{
	struct fixture *fixture = *state;

	(void)close(fixture->output.fd);
	fixture->output.fd = -1;
	begin(fixture);
	add(fixture, 0, "1");
	end(fixture);
	assert_int_equal(timeline_write(&fixture->timeline, &fixture->error), -PTVM_SYSTEM);
	assert_int_equal(fixture->error.sys_errno, EBADF);
}

static void on_alarm(int number)
{
}

/* Lanes in turn, in more pieces than are written at once. */
static size_t add_many(struct fixture *fixture)
{
	enum { RUNS = 5000, RUN_BYTES = 999 };
	char line[RUN_BYTES + 1];

	memset(line, 'x', sizeof(line));
	for (unsigned lane = 0; lane < LANES; lane++) {
		struct chunk *chunk = calloc(1, sizeof(*chunk));

		assert_non_null(chunk);
		for (unsigned i = 0; i < RUNS; i++) {
			line[0] = (char)('a' + lane);
			text_add(&chunk->text, line, RUN_BYTES);
			assert_true(
				vec_push(&chunk->runs, (struct print_run){ i, chunk->text.size }));
		}
		chunk_list_push(&fixture->timeline.lanes[lane].chunks, chunk);
	}
	end(fixture);
	return (size_t)RUNS * RUN_BYTES * LANES;
}

/* Read all; each run must follow that of the lane before. */
static void *read_all(void *fd)
{
	size_t size = 0, runs = 0;
	char buffer[4096];
	ssize_t got;

	while ((got = read(*(int *)fd, buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR))
		for (ssize_t i = 0; i < got; i++, size++)
			if (buffer[i] != 'x' && size % 999 == 0 &&
			    buffer[i] == (char)('a' + runs % LANES))
				runs++;
	return (void *)(runs * 999 == size ? size : 0);
}

/* Signals cut what is written short. */
static void nothing_is_lost_where_less_is_written_than_asked(void **state)
{
	const struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { 0 };
	const struct sigaction action = { .sa_handler = on_alarm };
	struct fixture *fixture = *state;
	size_t size;
	pthread_t reader;
	void *read;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	(void)close(fixture->output.fd);
	fixture->output.fd = fds[1];
	begin(fixture);
	size = add_many(fixture);
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_all, &fds[0]), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_int_equal(timeline_write(&fixture->timeline, &fixture->error), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(close(fds[1]), 0);
	fixture->output.fd = -1;
	assert_int_equal(pthread_join(reader, &read), 0);
	assert_int_equal((size_t)read, size);
	assert_int_equal(close(fds[0]), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(lines_are_in_order_of_time_and_then_of_lanes),
		TEST(lines_of_many_lanes_come_in_order_however_they_arrive),
		TEST(lines_do_not_wait_for_those_that_come_later),
		TEST(lines_wait_for_those_that_may_come_before),
		TEST(where_chunks_end_does_not_matter),
		TEST(what_led_to_samples_is_no_line),
		TEST(chunks_that_are_written_are_given_back),
		TEST(a_limit_ends_it),
		TEST(relative_times_are_filled_in),
		TEST(lines_that_are_made_on_the_way_go_out_together),
		TEST(lines_that_are_made_on_the_way_may_be_many),
		TEST(an_error_is_told),
		TEST(nothing_is_lost_where_less_is_written_than_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
