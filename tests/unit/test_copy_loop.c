#include "host/record/copy_loop.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/interrupt.h"
#include "decode/base/monotonic.h"
#include "guest/channel.h"
#include "guest/guest_copy.h"
#include "tests/fake_domain.h"
#include "tests/said.h"

static struct fixture {
	struct guest_copy copy;
	struct ptvm_error error;
	struct interrupt interrupt;
	struct said said;
	/* What next() does, and how often it has. */
	int steps, done;
	int end;    /* what the last step returns */
	int signal; /* sent in the second step; 0: none */
} fixture;

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fixture.copy.doing = "code";
	(void)signal(SIGHUP, SIG_DFL); /* nohup ignores it */
	interrupt_hold(&fixture.interrupt);
	return 0;
}

static int tear_down(void **state)
{
	interrupt_release(&fixture.interrupt);
	return 0;
}

static int next(void *context, struct ptvm_error *error)
{
	assert_ptr_equal(context, &fixture);
	fixture.done++;
	if (fixture.signal && fixture.done == 2)
		assert_int_equal(raise(fixture.signal), 0);
	if (fixture.done < fixture.steps)
		return 1;
	return fixture.end ? ptvm_fail(error, PTVM_BAD_INPUT, "no sense") : 0;
}

static int run(void)
{
	int r;

	said_begin(&fixture.said);
	r = copy_loop_run(&fixture.copy, next, &fixture, &fixture.error);
	(void)said_end(&fixture.said);
	return r;
}

static void it_goes_on_to_the_end(void **state)
{
	fixture.steps = 5;
	assert_int_equal(run(), 0);
	assert_int_equal(fixture.done, 5);
	assert_string_equal(fixture.said.text, ""); /* it is no terminal */
}

static void a_step_that_fails_is_the_last(void **state)
{
	fixture.steps = 3;
	fixture.end = -PTVM_BAD_INPUT;
	assert_int_equal(run(), -PTVM_BAD_INPUT);
	assert_int_equal(fixture.done, 3);
	assert_string_equal(fixture.error.message, "no sense");
}

static void a_signal_ends_it_after_the_step(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	sigset_t pending;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		fixture.steps = 5;
		fixture.done = 0;
		fixture.signal = signals[i];
		assert_int_equal(run(), -PTVM_END);
		assert_int_equal(fixture.done, 2);
		assert_int_equal(sigpending(&pending), 0);
		assert_int_equal(sigismember(&pending, signals[i]), 0);
	}
}

static void a_signal_in_the_last_step_counts_too(void **state)
{
	fixture.steps = 2;
	fixture.signal = SIGINT;
	assert_int_equal(run(), -PTVM_END);
}

/* Who has failed anyway is told why. */
static void a_failure_goes_before_a_signal(void **state)
{
	fixture.steps = 2;
	fixture.end = -PTVM_BAD_INPUT;
	fixture.signal = SIGINT;
	assert_int_equal(run(), -PTVM_BAD_INPUT);
	assert_true(interrupt_take());
}

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);

	return size >= end_size && !strcmp(text + size - end_size, end);
}

/* Something of a copy is shown on a terminal, whose other end is `master`, and cleared. */
static void assert_shows(int master, int terminal, const char *begin)
{
	const int kept = dup(STDERR_FILENO);
	char text[200];
	size_t used = 0;
	ssize_t size;

	fixture.done = 0;
	assert_true(kept >= 0 && dup2(terminal, STDERR_FILENO) >= 0);
	assert_int_equal(copy_loop_run(&fixture.copy, next, &fixture, NULL), 0);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	assert_int_equal(close(kept), 0);
	do {
		size = read(master, text + used, sizeof(text) - 1 - used);
		assert_true(size > 0);
		used += (size_t)size;
		text[used] = '\0';
	} while (!ends_with(text, "\r\033[K"));
	assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
	assert_true(ends_with(text, " s \033[K\r\033[K"));
}

static void a_terminal_shows_how_far_it_is(void **state)
{
	const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	const char *name;
	int terminal;

	if (master < 0 || grantpt(master) || unlockpt(master) || !(name = ptsname(master)))
		skip(); /* there are no terminals here */
	terminal = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(terminal >= 0);
	fixture.steps = 1;
	fixture.copy.done = 3 << 19;
	assert_shows(master, terminal, "\rcode: 1.5 MiB, ");
	fixture.copy.total = 3 << 20;
	assert_shows(master, terminal, "\rcode: 1.5 of 3.0 MiB, ");
	assert_int_equal(close(terminal), 0);
	assert_int_equal(close(master), 0);
}

/* Of copy_by(): the ways that it was called with, as their names, and what it returns. */
static struct attempts {
	const int *results;
	size_t count;
	char names[100];
} attempts;

static int copy_by(void *context, struct guest_way *way, struct ptvm_error *error)
{
	int r = attempts.results[attempts.count++];

	assert_ptr_equal(context, &attempts);
	(void)strcat(strcat(attempts.names, way->channel->way->name), " ");
	return r ? ptvm_fail(error, (enum ptvm_err) - r, "attempt %zu", attempts.count) : 0;
}

static int try_ways(const struct copy_ways *ways, const int *results)
{
	int r;

	attempts = (struct attempts){ .results = results };
	fixture.error = (struct ptvm_error){ 0 };
	said_begin(&fixture.said);
	r = copy_loop_by_ways(ways, copy_by, &attempts, &fixture.error);
	(void)said_end(&fixture.said);
	return r;
}

static void the_first_way_that_works_is_enough(void **state)
{
	const struct copy_ways ways = { .verb = "guest", .list = "mount=/,ssh=a" };

	assert_int_equal(try_ways(&ways, (const int[]){ 0 }), 0);
	assert_string_equal(attempts.names, "mount ");
	assert_string_equal(fixture.said.text, "");
}

static void ways_that_fail_are_told_but_for_the_last(void **state)
{
	const struct copy_ways ways = { .verb = "guest",
					.list = "mount=/nonexistent,ssh=a,mount=/" };
	static const int no_success[] = { -PTVM_SYSTEM, -PTVM_BAD_INPUT };
	static const int late_success[] = { -PTVM_SYSTEM, 0 };
	static const char said[] =
		"ptvm guest: by mount=/nonexistent: /nonexistent: No such file or directory\n"
		"ptvm guest: by ssh=a: attempt 1\n";

	assert_int_equal(try_ways(&ways, no_success), -PTVM_BAD_INPUT);
	assert_string_equal(fixture.error.message, "attempt 2");
	assert_string_equal(attempts.names, "ssh mount ");
	assert_string_equal(fixture.said.text, said);
	assert_int_equal(try_ways(&ways, late_success), 0);
	assert_string_equal(fixture.error.message, "");
	assert_string_equal(fixture.said.text, said);
}

static void who_interrupts_wants_no_other_way(void **state)
{
	const struct copy_ways ways = { .verb = "guest", .list = "mount=/,ssh=a" };

	assert_int_equal(try_ways(&ways, (const int[]){ -PTVM_END }), -PTVM_END);
	assert_int_equal(attempts.count, 1);
	assert_string_equal(fixture.said.text, "");
}

/* As where libvirtd hangs: a way cannot be opened, and the user does not want to wait. */
static void who_interrupts_an_opening_wants_no_other_way(void **state)
{
	const struct copy_ways ways = { .verb = "guest", .list = "mount=/nonexistent,mount=/" };
	const struct copy_ways last = { .verb = "guest", .list = "mount=/nonexistent" };
	static const char said[] =
		"ptvm guest: by mount=/nonexistent: /nonexistent: No such file or directory\n";

	assert_int_equal(raise(SIGTERM), 0);
	assert_int_equal(try_ways(&ways, NULL), -PTVM_END);
	assert_int_equal(attempts.count, 0);
	assert_string_equal(fixture.said.text, said);
	assert_int_equal(raise(SIGTERM), 0);
	assert_int_equal(try_ways(&last, NULL), -PTVM_END);
	assert_string_equal(fixture.said.text, said);
}

/* A domain of libvirt is called tainted for good: once, the user is told so. */
static void that_the_monitor_was_asked_is_told_once(void **state)
{
	struct copy_ways ways = { .verb = "record",
				  .list = "memory",
				  .target = { .domain = "vm" } };

	fake_libvirt = (struct fake_libvirt){ .domain = { .name = "vm", .is_running = true } };
	assert_int_equal(try_ways(&ways, NULL), -PTVM_SYSTEM);
	assert_int_equal(attempts.count, 0);
	assert_non_null(strstr(fixture.said.text, "ptvm record: this asked QEMU's monitor"));
	ways.is_again = true;
	assert_int_equal(try_ways(&ways, NULL), -PTVM_SYSTEM);
	assert_string_equal(fixture.said.text, "");
	assert_int_equal(fake_libvirt.opened, fake_libvirt.closed);
}

static void numbers_are_as_people_read_them(void **state)
{
	const double seconds = copy_loop_seconds(monotonic_ms() - 2500);

	assert_true(seconds >= 2.5 && seconds < 60);
	assert_true(copy_loop_mib(0) == 0);
	assert_true(copy_loop_mib(3 << 19) == 1.5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_goes_on_to_the_end),
		TEST(a_step_that_fails_is_the_last),
		TEST(a_signal_ends_it_after_the_step),
		TEST(a_signal_in_the_last_step_counts_too),
		TEST(a_failure_goes_before_a_signal),
		TEST(a_terminal_shows_how_far_it_is),
		TEST(the_first_way_that_works_is_enough),
		TEST(ways_that_fail_are_told_but_for_the_last),
		TEST(who_interrupts_wants_no_other_way),
		TEST(who_interrupts_an_opening_wants_no_other_way),
		TEST(that_the_monitor_was_asked_is_told_once),
		cmocka_unit_test(numbers_are_as_people_read_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
