#include "guest/channel_agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fake_guest.h"

static struct fixture {
	struct fake_tree tree;
	struct fake_agent agent;
	struct fake_script script;
	struct channel *channel;
	struct ptvm_error error;
} fixture;

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fake_tree_init(&fixture.tree);
	fake_tree_file(&fixture.tree, "0123456789", "proc/digits");
	fixture.agent.tree = &fixture.tree;
	return 0;
}

static int tear_down(void **state)
{
	channel_free(fixture.channel);
	assert_int_equal(fixture.agent.open, fixture.agent.closed);
	fake_tree_deinit(&fixture.tree);
	return 0;
}

/* Some of what an agent says. */
#define HANDLE "{\"return\": 1000}"
#define OTHER_HANDLE "{\"return\": -9007199254740993}"
#define AT(offset) "{\"return\": {\"position\": " #offset ", \"eof\": false}}"
#define FOUR "{\"return\": {\"count\": 4, \"buf-b64\": \"YWJjZA==\", \"eof\": false}}"
#define TWO "{\"return\": {\"count\": 2, \"buf-b64\": \"ZWY=\", \"eof\": false}}"
#define NO_MORE "{\"return\": {\"count\": 0, \"buf-b64\": \"\", \"eof\": true}}"
#define REFUSAL "{\"error\": {\"class\": \"GenericError\"}}"

/* And of what it is asked, as fake_script keeps it. */
#define OPEN(path) "file-open\",\"arguments\":{\"path\":\"" path "\",\"mode\":\"r\"}}\n"
#define READ(handle, count)                                                                        \
	"file-read\",\"arguments\":{\"handle\":" #handle ",\"count\":" #count "}}\n"
#define SEEK(handle, offset)                                                                       \
	"file-seek\",\"arguments\":{\"handle\":" #handle ",\"offset\":" #offset ",\"whence\":0}}"  \
	"\n"
#define CLOSE(handle) "file-close\",\"arguments\":{\"handle\":" #handle "}}\n"

/* An agent with these replies, the last of which is for all that follow, too. */
static void answer(const char *const *replies, size_t count)
{
	const struct agent_line line = { fake_script_ask, &fixture.script };

	fixture.script = (struct fake_script){ .replies = replies, .count = count };
	assert_int_equal(channel_agent_new(&line, &fixture.channel), 0);
}

#define ANSWER(...)                                                                                \
	static const char *const replies[] = { __VA_ARGS__ };                                      \
	answer(replies, sizeof(replies) / sizeof(replies[0]))

static int open_file(const char *path)
{
	return channel_open(fixture.channel, path, &fixture.error);
}

static int read_at(uint64_t offset, size_t size)
{
	char data[64];

	return channel_read(fixture.channel, offset, data, size, &fixture.error);
}

static void nothing_is_asked_before_a_file_is_opened(void **state)
{
	ANSWER(HANDLE);
	channel_free(fixture.channel);
	fixture.channel = NULL;
	assert_string_equal(fixture.script.asked, "");
}

static void only_who_reads_elsewhere_seeks(void **state)
{
	ANSWER(HANDLE, FOUR, TWO, NO_MORE, AT(100), FOUR);
	assert_int_equal(open_file("/proc/kcore"), 0);
	assert_int_equal(read_at(0, 4), 4);
	assert_int_equal(read_at(4, 8), 2);
	assert_int_equal(read_at(100, 4), 4);
	assert_int_equal(read_at(104, 4), 4);
	assert_string_equal(fixture.script.asked,
			    OPEN("/proc/kcore") READ(1000, 4) READ(1000, 8) READ(1000, 6)
				    SEEK(1000, 100) READ(1000, 4) READ(1000, 4));
}

static void each_file_has_its_handle_and_its_beginning(void **state)
{
	ANSWER(HANDLE, FOUR, "{\"return\": {}}", OTHER_HANDLE, FOUR);
	assert_int_equal(open_file("/a"), 0);
	assert_int_equal(read_at(0, 4), 4);
	assert_int_equal(open_file("/b"), 0);
	assert_int_equal(read_at(0, 4), 4);
	channel_free(fixture.channel);
	fixture.channel = NULL;
	assert_string_equal(fixture.script.asked,
			    OPEN("/a") READ(1000, 4) CLOSE(1000) OPEN("/b")
				    READ(-9007199254740993, 4) CLOSE(-9007199254740993));
}

static void what_was_not_opened_is_not_closed(void **state)
{
	ANSWER(REFUSAL, NULL);
	assert_int_equal(open_file("/a"), -PTVM_BAD_INPUT);
	fixture.error = (struct ptvm_error){ 0 };
	assert_int_equal(open_file("/b"), -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message, "guest agent: no answer");
	channel_free(fixture.channel);
	fixture.channel = NULL;
	assert_string_equal(fixture.script.asked, OPEN("/a") OPEN("/b"));
}

/* Where the agent is then, nobody knows. */
static void who_failed_to_seek_seeks_again(void **state)
{
	ANSWER(HANDLE, AT(8), REFUSAL, NULL, AT(7), FOUR);
	assert_int_equal(open_file("/a"), 0);
	assert_int_equal(read_at(7, 4), -PTVM_BAD_INPUT);
	assert_string_equal(fixture.error.message, "/a: the guest agent cannot go to 7");
	assert_int_equal(read_at(7, 4), -PTVM_BAD_INPUT);
	assert_int_equal(read_at(7, 4), -PTVM_SYSTEM);
	assert_int_equal(read_at(7, 4), 4);
	assert_string_equal(fixture.script.asked, OPEN("/a") SEEK(1000, 7) SEEK(1000, 7) SEEK(
							  1000, 7) SEEK(1000, 7) READ(1000, 4));
}

static void offsets_that_no_file_has_are_not_asked_for(void **state)
{
	ANSWER(HANDLE, AT(9223372036854775803), FOUR);
	assert_int_equal(open_file("/a"), 0);
	assert_int_equal(read_at(UINT64_MAX - 4, 4), 0);
	assert_int_equal(read_at((uint64_t)INT64_MAX + 1, 4), 0);
	assert_int_equal(read_at(INT64_MAX - 3, 4), 0);
	assert_string_equal(fixture.script.asked, OPEN("/a"));
	assert_int_equal(read_at(INT64_MAX - 4, 4), 4);
}

static void the_longest_path_fits_into_a_command(void **state)
{
	char path[CHANNEL_PATH_BYTES], expected[CHANNEL_PATH_BYTES + 100];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	ANSWER(HANDLE);
	assert_int_equal(open_file(path), 0);
	(void)snprintf(expected, sizeof(expected), OPEN("%s"), path);
	assert_string_equal(fixture.script.asked, expected);
}

/* tear_down() checks that all handles were closed. */
static void assert_lie(enum fake_lie lie, int expected)
{
	const struct agent_line line = { fake_agent_ask, &fixture.agent };

	assert_int_equal(channel_agent_new(&line, &fixture.channel), 0);
	fixture.agent.lie = lie;
	assert_int_equal(open_file("/proc/digits"), 0);
	assert_int_equal(read_at(2, 3), expected);
}

static void an_agent_that_does_not_answer_is_hung_up(void **state)
{
	assert_lie(FAKE_READ_FAILS, -PTVM_SYSTEM);
}

static void an_agent_that_seeks_elsewhere_is_not_believed(void **state)
{
	assert_lie(FAKE_SEEKS_WRONG, -PTVM_BAD_INPUT);
}

static void an_agent_that_says_too_much_is_cut_short(void **state)
{
	assert_lie(FAKE_READS_MORE, 3);
}

static void an_agent_without_sense_is_refused(void **state)
{
	assert_lie(FAKE_READS_NONSENSE, -PTVM_BAD_INPUT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_asked_before_a_file_is_opened),
		TEST(only_who_reads_elsewhere_seeks),
		TEST(each_file_has_its_handle_and_its_beginning),
		TEST(what_was_not_opened_is_not_closed),
		TEST(who_failed_to_seek_seeks_again),
		TEST(offsets_that_no_file_has_are_not_asked_for),
		TEST(the_longest_path_fits_into_a_command),
		TEST(an_agent_that_does_not_answer_is_hung_up),
		TEST(an_agent_that_seeks_elsewhere_is_not_believed),
		TEST(an_agent_that_says_too_much_is_cut_short),
		TEST(an_agent_without_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
