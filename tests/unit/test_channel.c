#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/channel_agent.h"
#include "guest/channel_exec.h"
#include "guest/channel_mount.h"
#include "guest/channel_ssh.h"
#include "tests/fake_guest.h"
#include "tests/fake_ssh.h"

struct fixture {
	struct fake_tree tree;
	struct fake_agent agent;
	struct channel *channel;
	struct fake_ssh ssh;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fake_tree_init(&fixture->tree);
	fake_tree_file(&fixture->tree, "0123456789", "proc/digits");
	fixture->agent.tree = &fixture->tree;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	channel_free(fixture->channel);
	assert_int_equal(fixture->agent.open, fixture->agent.closed);
	fake_ssh_deinit(&fixture->ssh);
	fake_tree_deinit(&fixture->tree);
	free(fixture);
	return 0;
}

static struct channel *mount_tree(struct fixture *fixture)
{
	assert_int_equal(channel_mount_new(fixture->tree.path, &fixture->channel, NULL), 0);
	return fixture->channel;
}

static struct channel *call_agent(struct fixture *fixture)
{
	const struct agent_line line = { fake_agent_ask, &fixture->agent };

	assert_int_equal(channel_agent_new(&line, &fixture->channel), 0);
	return fixture->channel;
}

static struct channel *run_by_agent(struct fixture *fixture)
{
	const struct agent_line line = { fake_agent_ask, &fixture->agent };

	assert_int_equal(channel_exec_new(&line, &fixture->channel), 0);
	return fixture->channel;
}

static struct channel *call_ssh(struct fixture *fixture)
{
	fake_ssh_init(&fixture->ssh, &fixture->tree, fake_ssh_honest);
	assert_int_equal(channel_ssh_new("root@guest", &fixture->channel, NULL), 0);
	return fixture->channel;
}

static void assert_reads_digits(struct channel *channel)
{
	char text[16] = "";

	assert_int_equal(channel_open(channel, "/proc/digits", NULL), 0);
	assert_int_equal(channel_read(channel, 0, text, 4, NULL), 4);
	assert_memory_equal(text, "0123", 4);
	assert_int_equal(channel_read(channel, 4, text, 2, NULL), 2);
	assert_memory_equal(text, "45", 2);
	assert_int_equal(channel_read(channel, 8, text, 8, NULL), 2);
	assert_memory_equal(text, "89", 2);
	assert_int_equal(channel_read(channel, 1, text, 2, NULL), 2);
	assert_memory_equal(text, "12", 2);
	assert_int_equal(channel_read(channel, 10, text, 8, NULL), 0);
	assert_int_equal(channel_read_text(channel, "/proc/digits", text, 5, NULL), 4);
	assert_string_equal(text, "0123");
}

static void every_way_reads_at_any_offset(void **state)
{
	struct fixture *fixture = *state;

	assert_reads_digits(mount_tree(fixture));
	channel_free(fixture->channel);
	assert_reads_digits(call_agent(fixture));
	channel_free(fixture->channel);
	assert_reads_digits(run_by_agent(fixture));
	channel_free(fixture->channel);
	assert_reads_digits(call_ssh(fixture));
}

static void assert_runs(struct channel *channel)
{
	char text[8];

	assert_int_equal(channel_run_text(channel, "echo 123; echo 4", text, sizeof(text), NULL),
			 6);
	assert_string_equal(text, "123\n4\n");
	assert_int_equal(channel_run_text(channel, "echo 123456789", text, sizeof(text), NULL), 7);
	assert_string_equal(text, "1234567");
	assert_int_equal(channel_run_text(channel, "echo 1; false", text, sizeof(text), NULL),
			 -PTVM_SYSTEM);
	assert_string_equal(text, "");
	assert_int_equal(channel_read_text(channel, "/proc/digits", text, 5, NULL), 4);
	assert_string_equal(text, "0123");
}

static void some_ways_run_programs(void **state)
{
	struct fixture *fixture = *state;
	struct channel *channel = mount_tree(fixture);
	char text[8];

	assert_int_equal(channel_run_text(channel, "echo", text, sizeof(text), NULL),
			 -PTVM_NOT_FOUND);
	channel_free(fixture->channel);
	assert_runs(run_by_agent(fixture));
	channel_free(fixture->channel);
	assert_runs(call_ssh(fixture));
}

static void large_files_come_in_pieces_of_a_mebibyte(void **state)
{
	struct fixture *fixture = *state;
	size_t size = 3 * CHANNEL_READ_BYTES + 5;
	char *data = calloc(2, size), *back = data + size;
	struct channel *channel = call_agent(fixture);

	assert_non_null(data);
	for (size_t i = 0; i < size; i++)
		data[i] = (char)(i * 31 >> 3);
	fake_tree_bytes(&fixture->tree, data, size, "proc/large");
	assert_int_equal(channel_open(channel, "/proc/large", NULL), 0);
	assert_int_equal(channel_read(channel, 0, back, size, NULL), size);
	assert_memory_equal(data, back, size);
	assert_int_equal(fixture->agent.most, CHANNEL_READ_BYTES);
	assert_int_equal(channel->bytes, size);
	free(data);
}

static void paths_that_could_mean_more_are_refused(void **state)
{
	static const char *const paths[] = { "proc/digits", "/../etc/passwd", "/proc/..",
					     "/proc/a b",   "/proc/\"",       "/proc/;ls",
					     "/$(ls)" };
	struct channel *channel = mount_tree(*state);
	char text[8];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(channel_read_text(channel, paths[i], text, sizeof(text), NULL),
				 -PTVM_BAD_USAGE);
}

/* As the kernel names sections of modules. */
static void names_may_have_several_dots(void **state)
{
	struct fixture *fixture = *state;
	struct channel *channel = mount_tree(fixture);
	char text[8];

	fake_tree_file(&fixture->tree, "0x1\n", "sys/.data..once");
	assert_int_equal(channel_read_text(channel, "/sys/.data..once", text, sizeof(text), NULL),
			 4);
	assert_string_equal(text, "0x1\n");
}

static void a_channel_ends_after_its_time(void **state)
{
	struct channel *channel = call_agent(*state);
	struct ptvm_error error = { 0 };
	char text[4];

	assert_int_equal(channel_open(channel, "/proc/digits", NULL), 0);
	channel->end_ms = 0;
	assert_int_equal(channel_read(channel, 0, text, sizeof(text), &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "/proc/digits: agent took more than 600 seconds");
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(every_way_reads_at_any_offset),
		WITH_FIXTURE(some_ways_run_programs),
		WITH_FIXTURE(large_files_come_in_pieces_of_a_mebibyte),
		WITH_FIXTURE(paths_that_could_mean_more_are_refused),
		WITH_FIXTURE(names_may_have_several_dots),
		WITH_FIXTURE(a_channel_ends_after_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
