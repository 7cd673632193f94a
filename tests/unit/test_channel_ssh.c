#include "guest/channel_ssh.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/fake_ssh.h"
#include "tests/said.h"

static struct fake_tree tree;
static struct fake_ssh ssh;
static struct channel *channel;

/* Calls of poll() with descriptors that are not made: the first is interrupted, the others time
 * out. 0: all are made. */
static unsigned silent_polls;

/* Takes the place of that of libc. */
int poll(struct pollfd *fds, nfds_t count, int ms)
{
	int (*const next)(struct pollfd *, nfds_t, int) =
		(__typeof__(next))dlsym(RTLD_NEXT, "poll");

	if (!count || !silent_polls)
		return next(fds, count, ms);
	errno = EINTR;
	return silent_polls++ == 1 ? -1 : 0;
}

static int set_up(void **state)
{
	fake_tree_init(&tree);
	fake_tree_file(&tree, "0123456789", "proc/digits");
	channel = NULL;
	return 0;
}

static int tear_down(void **state)
{
	channel_free(channel);
	fake_ssh_deinit(&ssh);
	fake_tree_deinit(&tree);
	return 0;
}

static void call_ssh(const char *script)
{
	fake_ssh_init(&ssh, &tree, script);
	assert_int_equal(channel_ssh_new("root@guest", &channel, NULL), 0);
}

static void an_ssh_that_fails_is_a_failure(void **state)
{
	struct ptvm_error error = { 0 };
	char text[100];

	call_ssh("#!/bin/sh\necho some of it; exit 255\n");
	assert_int_equal(channel_read_text(channel, "/proc/kcore", text, sizeof(text), &error),
			 -PTVM_SYSTEM);
	assert_string_equal(error.message, "/proc/kcore: ssh root@guest failed (status 255)");
	assert_string_equal(text, "");
}

/* What goes to standard error while a missing file is read. */
static const char *what_is_said(struct ptvm_error *error)
{
	static struct said said;
	char text[8];
	int r;

	said_begin(&said);
	r = channel_read_text(channel, "/lib/modules/6.1/modules.dep", text, sizeof(text), error);
	(void)said_end(&said);
	assert_int_equal(r, -PTVM_SYSTEM);
	return said.text;
}

static void who_does_not_listen_to_errors_is_not_told_by_ssh(void **state)
{
	struct ptvm_error error = { 0 };

	call_ssh(fake_ssh_honest);
	assert_string_equal(what_is_said(NULL), "");
	assert_non_null(strstr(what_is_said(&error), "No such file"));
}

static void an_ssh_that_does_not_end_is_ended(void **state)
{
	char text[100];

	call_ssh("#!/bin/sh\ntrap '' TERM\nexec sleep 600 >&- 2>&-\n");
	assert_int_equal(channel_read_text(channel, "/proc/kcore", text, sizeof(text), NULL),
			 -PTVM_SYSTEM);
}

/* Nobody waits for more than that, even who was stopped and continued meanwhile. */
static void an_ssh_that_is_silent_for_long_is_a_failure(void **state)
{
	struct ptvm_error error = { 0 };
	char text[100];

	call_ssh("#!/bin/sh\nexec sleep 600\n");
	silent_polls = 1;
	assert_int_equal(channel_read_text(channel, "/proc/kcore", text, sizeof(text), &error),
			 -PTVM_SYSTEM);
	silent_polls = 0;
	assert_string_equal(error.message, "/proc/kcore: ssh root@guest is silent for 60 seconds");
}

static void an_endless_file_costs_what_was_asked_for(void **state)
{
	char text[5000];

	call_ssh("#!/bin/sh\nexec cat /dev/zero\n");
	assert_int_equal(channel_open(channel, "/proc/kcore", NULL), 0);
	assert_int_equal(channel_read(channel, 0, text, sizeof(text), NULL), sizeof(text));
	assert_int_equal(channel->bytes, sizeof(text));
}

static void the_host_needs_a_name_that_can_be(void **state)
{
	struct ptvm_error error = { 0 };
	char host[513];

	assert_int_equal(channel_ssh_new("", &channel, &error), -PTVM_BAD_USAGE);
	assert_string_equal(error.message, "ssh: no host is named");
	memset(host, 'x', sizeof(host));
	host[512] = '\0';
	error = (struct ptvm_error){ 0 };
	assert_int_equal(channel_ssh_new(host, &channel, &error), -PTVM_BAD_USAGE);
	assert_string_equal(error.message, "ssh: the name of the host is too long");
	host[511] = '\0';
	assert_int_equal(channel_ssh_new(host, &channel, NULL), 0);
}

/* Keeps the commands, and runs them. */
static const char noting_ssh[] = "#!/bin/sh\n"
				 "cd \"$(dirname \"$0\")/..\" && echo \"$4\" >>asked\n"
				 "eval \"$(echo \"$4\" | sed s,if=/,if=,)\"\n";

static void assert_asked(const char *expected)
{
	char path[PATH_MAX], asked[1000] = "";
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/asked", tree.path);
	file = fopen(path, "r");
	assert_non_null(file);
	(void)fread(asked, 1, sizeof(asked) - 1, file);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(asked, expected);
}

static void assert_reads(uint64_t offset, size_t size, const char *expected)
{
	struct ptvm_error error = { 0 };
	char text[16] = "";

	assert_int_equal(channel_read(channel, offset, text, size, &error), strlen(expected));
	assert_memory_equal(text, expected, strlen(expected));
}

static void one_program_serves_reads_that_follow_each_other(void **state)
{
	call_ssh(noting_ssh);
	assert_int_equal(channel_open(channel, "/proc/digits", NULL), 0);
	assert_reads(0, 3, "012");
	assert_reads(3, 2, "34");
	assert_reads(5, 1, "5");
	assert_asked("dd if=/proc/digits bs=4096 skip=0 status=none\n");
	assert_reads(7, 2, "78");
	assert_reads(0, 1, "0");
	assert_asked("dd if=/proc/digits bs=4096 skip=0 status=none\n"
		     "dd if=/proc/digits bs=4096 skip=0 status=none\n"
		     "dd if=/proc/digits bs=4096 skip=0 status=none\n");
}

static void it_begins_at_the_block(void **state)
{
	char data[3 * 4096 + 1];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)('a' + i / 4096);
	fake_tree_bytes(&tree, data, sizeof(data), "proc/kcore");
	call_ssh(noting_ssh);
	assert_int_equal(channel_open(channel, "/proc/kcore", NULL), 0);
	assert_reads(4095, 2, "ab");
	assert_reads(2 * 4096, 1, "c");
	assert_reads(3 * 4096 - 1, 3, "cd");
	assert_asked("dd if=/proc/kcore bs=4096 skip=0 status=none\n"
		     "dd if=/proc/kcore bs=4096 skip=2 status=none\n"
		     "dd if=/proc/kcore bs=4096 skip=2 status=none\n");
}

static void another_file_is_read_by_another_program(void **state)
{
	fake_tree_file(&tree, "abcdef", "proc/letters");
	call_ssh(noting_ssh);
	assert_int_equal(channel_open(channel, "/proc/digits", NULL), 0);
	assert_reads(0, 2, "01");
	assert_int_equal(channel_open(channel, "/proc/letters", NULL), 0);
	assert_reads(2, 2, "cd");
	assert_asked("dd if=/proc/digits bs=4096 skip=0 status=none\n"
		     "dd if=/proc/letters bs=4096 skip=0 status=none\n");
}

static void beyond_its_end_a_file_has_nothing(void **state)
{
	call_ssh(fake_ssh_honest);
	assert_int_equal(channel_open(channel, "/proc/digits", NULL), 0);
	assert_reads(9, 4, "9");
	assert_reads(10, 4, "");
	assert_reads(12, 4, "");
	assert_reads(5000, 4, "");
}

static void an_ssh_that_a_signal_ended_is_a_failure(void **state)
{
	struct ptvm_error error = { 0 };
	char text[100];

	call_ssh("#!/bin/sh\necho some of it; kill -9 $$\n");
	assert_int_equal(channel_read_text(channel, "/proc/kcore", text, sizeof(text), &error),
			 -PTVM_SYSTEM);
	assert_string_equal(error.message, "/proc/kcore: ssh root@guest failed (status -1)");
}

static void that_there_is_no_ssh_is_told(void **state)
{
	struct ptvm_error error = { 0 };
	char text[8];

	call_ssh(fake_ssh_honest);
	assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
	assert_int_equal(channel_read_text(channel, "/proc/digits", text, sizeof(text), &error),
			 -PTVM_SYSTEM);
	assert_string_equal(error.message, "ssh: No such file or directory");
}

/* What was piped to ptvm is not for ssh. */
static void ssh_gets_no_input(void **state)
{
	const int kept = dup(STDIN_FILENO);
	char text[16];
	int ends[2];

	assert_true(kept >= 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "secret", 6), 6);
	assert_int_equal(close(ends[1]), 0);
	assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
	assert_int_equal(close(ends[0]), 0);
	call_ssh("#!/bin/sh\nexec cat\n");
	assert_int_equal(channel_run_text(channel, "x", text, sizeof(text), NULL), 0);
	assert_true(dup2(kept, STDIN_FILENO) >= 0);
	assert_int_equal(close(kept), 0);
}

static void commands_are_run_by_sh(void **state)
{
	char text[16];

	call_ssh(noting_ssh);
	assert_int_equal(channel_run_text(channel, "echo 1; echo 2", text, sizeof(text), NULL), 4);
	assert_string_equal(text, "1\n2\n");
	assert_asked("sh -c 'echo 1; echo 2'\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_program_serves_reads_that_follow_each_other),
		TEST(it_begins_at_the_block),
		TEST(another_file_is_read_by_another_program),
		TEST(beyond_its_end_a_file_has_nothing),
		TEST(an_ssh_that_fails_is_a_failure),
		TEST(an_ssh_that_a_signal_ended_is_a_failure),
		TEST(that_there_is_no_ssh_is_told),
		TEST(who_does_not_listen_to_errors_is_not_told_by_ssh),
		TEST(an_ssh_that_does_not_end_is_ended),
		TEST(an_ssh_that_is_silent_for_long_is_a_failure),
		TEST(an_endless_file_costs_what_was_asked_for),
		TEST(ssh_gets_no_input),
		TEST(commands_are_run_by_sh),
		TEST(the_host_needs_a_name_that_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
