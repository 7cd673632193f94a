#include "guest/channel_exec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/channel_agent.h"
#include "tests/fake_guest.h"

enum { BLOCK = 4096 };

static struct fixture {
	struct fake_tree tree;
	struct fake_agent agent;
	struct fake_script script;
	struct channel *channel;
	struct ptvm_error error;
	char data[64];
} fixture;

static int set_up(void **state)
{
	const struct agent_line line = { fake_agent_ask, &fixture.agent };

	memset(&fixture, 0, sizeof(fixture));
	fake_tree_init(&fixture.tree);
	fixture.agent.tree = &fixture.tree;
	assert_int_equal(channel_exec_new(&line, &fixture.channel), 0);
	return 0;
}

static int tear_down(void **state)
{
	channel_free(fixture.channel);
	fake_tree_deinit(&fixture.tree);
	return 0;
}

/* Some of what an agent says. */
#define STARTED "{\"return\": {\"pid\": 77}}"
#define RUNS "{\"return\": {\"exited\": false}}"
#define ENDED(status, output)                                                                      \
	"{\"return\": {\"exited\": true, \"exitcode\": " #status ", \"out-data\": \"" output "\"}" \
	"}"
#define KILLED "{\"return\": {\"exited\": true, \"signal\": 9, \"out-data\": \"YWJjZA==\"}}"
#define REFUSAL "{\"error\": {\"class\": \"GenericError\"}}"

/* And of what it is asked, as fake_script keeps it. */
#define RUN(program, words)                                                                        \
	"exec\",\"arguments\":{\"path\":\"" program "\",\"arg\":[" words                           \
	"],\"capture-output\":true}}\n"
#define DD(path, skip, count)                                                                      \
	RUN("dd", "\"if=" path "\",\"bs=4096\",\"skip=" #skip "\",\"count=" #count "\"")
#define WAIT "exec-status\",\"arguments\":{\"pid\":77}}\n"

/* An agent with these replies, the last of which is for all that follow, too. */
static void answer(const char *const *replies, size_t count)
{
	const struct agent_line line = { fake_script_ask, &fixture.script };

	fixture.script = (struct fake_script){ .replies = replies, .count = count };
	channel_free(fixture.channel);
	assert_int_equal(channel_exec_new(&line, &fixture.channel), 0);
	assert_int_equal(channel_open(fixture.channel, "/proc/digits", NULL), 0);
}

#define ANSWER(...)                                                                                \
	static const char *const replies[] = { __VA_ARGS__ };                                      \
	answer(replies, sizeof(replies) / sizeof(replies[0]))

static int read_at(uint64_t offset, size_t size)
{
	fixture.error = (struct ptvm_error){ 0 };
	memset(fixture.data, '-', sizeof(fixture.data));
	return channel_read(fixture.channel, offset, fixture.data, size, &fixture.error);
}

static void nothing_is_asked_before_a_file_is_read(void **state)
{
	ANSWER(STARTED);
	channel_close(fixture.channel);
	assert_string_equal(fixture.script.asked, "");
}

static void it_waits_until_dd_has_ended(void **state)
{
	ANSWER(STARTED, RUNS, RUNS, ENDED(0, "YWJjZA=="));
	assert_int_equal(read_at(1, 2), 2);
	assert_memory_equal(fixture.data, "bc-", 3);
	assert_string_equal(fixture.script.asked, DD("/proc/digits", 0, 2) WAIT WAIT WAIT);
}

static void assert_blocks(uint64_t offset, size_t size, uint64_t skip, size_t count)
{
	static const char *const replies[] = { STARTED, ENDED(0, "") };
	char expected[300], *data = malloc(size);

	answer(replies, 2);
	assert_non_null(data);
	assert_int_equal(channel_read(fixture.channel, offset, data, size, NULL), 0);
	free(data);
	(void)snprintf(expected, sizeof(expected),
		       RUN("dd", "\"if=/proc/digits\",\"bs=4096\",\"skip=%llu\",\"count=%zu\"")
			       WAIT,
		       (unsigned long long)skip, count);
	assert_string_equal(fixture.script.asked, expected);
}

/* The first block, the last one, and one more are enough for any place of `size` bytes. */
static void blocks_are_those_of_the_bytes(void **state)
{
	assert_blocks(0, 10, 0, 2);
	assert_blocks(BLOCK - 1, 2, 0, 2);
	assert_blocks(BLOCK, 1, 1, 2);
	assert_blocks(3 * BLOCK + 7, BLOCK, 3, 3);
	assert_blocks(UINT64_MAX - 10, 4, UINT64_MAX / BLOCK, 2);
	assert_blocks(0, CHANNEL_READ_BYTES, 0, CHANNEL_READ_BYTES / BLOCK + 2);
}

static void the_longest_path_fits_into_a_command(void **state)
{
	char path[CHANNEL_PATH_BYTES], expected[CHANNEL_PATH_BYTES + 300];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	ANSWER(STARTED, ENDED(0, ""));
	assert_int_equal(channel_open(fixture.channel, path, NULL), 0);
	assert_int_equal(read_at(UINT64_MAX - 10, 4), 0);
	(void)snprintf(expected, sizeof(expected), DD("%s", 4503599627370495, 2) WAIT, path);
	assert_string_equal(fixture.script.asked, expected);
}

static void assert_same(const char *file, size_t file_size, uint64_t offset, size_t size)
{
	size_t there = offset >= file_size ? 0 : file_size - offset;
	char *data = malloc(size);

	assert_non_null(data);
	there = there < size ? there : size;
	assert_int_equal(channel_read(fixture.channel, offset, data, size, NULL), there);
	assert_memory_equal(data, file + offset, there);
	free(data);
}

static void any_piece_of_a_file_is_read(void **state)
{
	static const size_t places[] = { 0,         1,         BLOCK - 1,          BLOCK,
					 BLOCK + 1, 5 * BLOCK, CHANNEL_READ_BYTES, 5 };
	const size_t size = CHANNEL_READ_BYTES + 3 * BLOCK + 5;
	char *file = malloc(2 * size);

	assert_non_null(file);
	for (size_t i = 0; i < 2 * size; i++)
		file[i] = (char)(i * 7 + (i >> 12));
	fake_tree_bytes(&fixture.tree, file, size, "proc/kcore");
	assert_int_equal(channel_open(fixture.channel, "/proc/kcore", NULL), 0);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		assert_same(file, size, places[i], 1);
		assert_same(file, size, places[i], BLOCK);
		assert_same(file, size, size - places[i], BLOCK + 2);
	}
	assert_same(file, size, BLOCK - 1, CHANNEL_READ_BYTES);
	assert_same(file, size, 1, size);
	free(file);
}

static void a_guest_that_says_more_is_cut_short(void **state)
{
	ANSWER(STARTED, ENDED(0, "YWJjZA=="));
	assert_int_equal(read_at(0, 2), 2);
	assert_memory_equal(fixture.data, "ab--", 4);
}

static void a_guest_that_says_less_has_no_more(void **state)
{
	ANSWER(STARTED, ENDED(0, "YWJjZA=="));
	assert_int_equal(read_at(4, 2), 0);
	fixture.script.next = 0;
	assert_int_equal(read_at(BLOCK - 1, 2), 0);
}

static void a_program_that_fails_in_the_guest_is_told(void **state)
{
	assert_int_equal(channel_open(fixture.channel, "/proc/none", NULL), 0);
	assert_int_equal(read_at(0, 1), -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message, "/proc/none: dd in the guest failed (status 1)");
}

static void a_program_that_was_killed_is_told(void **state)
{
	ANSWER(STARTED, KILLED);
	assert_int_equal(read_at(0, 1), -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message,
			    "/proc/digits: dd in the guest failed (status -1)");
}

static void an_agent_that_refuses_is_told(void **state)
{
	ANSWER(REFUSAL, NULL, STARTED, REFUSAL, STARTED, NULL);
	assert_int_equal(read_at(0, 1), -PTVM_BAD_INPUT);
	assert_int_equal(read_at(0, 1), -PTVM_SYSTEM);
	assert_int_equal(read_at(0, 1), -PTVM_BAD_INPUT);
	assert_int_equal(read_at(0, 1), -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message, "guest agent: no answer");
}

static void a_command_runs_once_however_much_it_prints(void **state)
{
	char text[4];

	ANSWER(STARTED, ENDED(0, "YWJjZA=="));
	assert_int_equal(channel_run_text(fixture.channel, "echo abcd", text, sizeof(text), NULL),
			 3);
	assert_string_equal(text, "abc");
	assert_string_equal(fixture.script.asked, RUN("sh", "\"-c\",\"echo abcd\"") WAIT);
}

static void a_command_that_fails_prints_nothing(void **state)
{
	char text[4] = "old";

	ANSWER(STARTED, ENDED(2, "YWJjZA=="));
	assert_int_equal(
		channel_run_text(fixture.channel, "echo", text, sizeof(text), &fixture.error),
		-PTVM_SYSTEM);
	assert_string_equal(text, "");
	assert_string_equal(fixture.error.message, "a command: sh in the guest failed (status 2)");
}

static void a_file_is_read_after_a_command(void **state)
{
	fake_tree_file(&fixture.tree, "0123456789", "proc/digits");
	assert_int_equal(channel_run_text(fixture.channel, "echo abcd", fixture.data,
					  sizeof(fixture.data), NULL),
			 5);
	assert_int_equal(channel_open(fixture.channel, "/proc/digits", NULL), 0);
	assert_int_equal(read_at(3, 4), 4);
	assert_memory_equal(fixture.data, "3456-", 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_asked_before_a_file_is_read),
		TEST(it_waits_until_dd_has_ended),
		TEST(blocks_are_those_of_the_bytes),
		TEST(the_longest_path_fits_into_a_command),
		TEST(any_piece_of_a_file_is_read),
		TEST(a_guest_that_says_more_is_cut_short),
		TEST(a_guest_that_says_less_has_no_more),
		TEST(a_program_that_fails_in_the_guest_is_told),
		TEST(a_program_that_was_killed_is_told),
		TEST(an_agent_that_refuses_is_told),
		TEST(a_command_runs_once_however_much_it_prints),
		TEST(a_command_that_fails_prints_nothing),
		TEST(a_file_is_read_after_a_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
