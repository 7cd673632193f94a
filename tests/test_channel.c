#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest/channel_agent.h"
#include "guest/channel_exec.h"
#include "guest/channel_mount.h"
#include "guest/channel_ssh.h"
#include "tests/fake_guest.h"

struct fixture {
	struct fake_tree tree;
	struct fake_agent agent;
	struct channel *channel;
	char *path_before;
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
	if (fixture->path_before)
		(void)setenv("PATH", fixture->path_before, 1);
	free(fixture->path_before);
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

/* An ssh that runs the command here, in the tree. */
static struct channel *call_ssh(struct fixture *fixture, const char *script)
{
	char path[PATH_MAX];

	fake_tree_file(&fixture->tree, script, "bin/ssh");
	(void)snprintf(path, sizeof(path), "%s/bin/ssh", fixture->tree.path);
	assert_int_equal(chmod(path, 0700), 0);
	fixture->path_before = strdup(getenv("PATH"));
	(void)snprintf(path, sizeof(path), "%s/bin:%s", fixture->tree.path, fixture->path_before);
	assert_int_equal(setenv("PATH", path, 1), 0);
	assert_int_equal(channel_ssh_new("root@guest", &fixture->channel, NULL), 0);
	return fixture->channel;
}

static const char honest_ssh[] =
	"#!/bin/sh\n"
	"[ \"$1 $2 $3\" = '-T -- root@guest' ] || exit 9\n"
	"cd \"$(dirname \"$0\")/..\" && eval \"$(echo \"$4\" | sed s,if=/,if=,)\"\n";

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
	assert_reads_digits(call_ssh(fixture, honest_ssh));
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
	assert_runs(call_ssh(fixture, honest_ssh));
}

static void directories_of_a_mount_are_listed(void **state)
{
	struct fixture *fixture = *state;
	struct channel *channel = mount_tree(fixture);
	char names[32];
	int size = channel_list(channel, "/proc", names, sizeof(names));

	assert_int_equal(size, sizeof("digits") + sizeof(".") + sizeof(".."));
	assert_non_null(memmem(names, (size_t)size, "digits", sizeof("digits")));
	assert_int_equal(channel_list(channel, "/proc", names, 1), 0);
	assert_int_equal(channel_list(channel, "/none", names, sizeof(names)), -PTVM_NOT_FOUND);
	assert_int_equal(channel_list(channel, "/../", names, sizeof(names)), -PTVM_NOT_FOUND);
	fake_tree_link(&fixture->tree, "proc", "link");
	assert_int_equal(channel_list(channel, "/link", names, sizeof(names)), -PTVM_NOT_FOUND);
}

static void a_program_that_fails_in_the_guest_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct channel *channel = run_by_agent(fixture);
	struct ptvm_error error = { 0 };
	char byte;

	assert_int_equal(channel_open(channel, "/proc/none", NULL), 0);
	assert_int_equal(channel_read(channel, 0, &byte, 1, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "/proc/none: dd in the guest cannot read it (status 1)");
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
	static const char *const paths[] = { "proc/digits", "/../etc/passwd", "/proc/a b",
					     "/proc/\"",    "/proc/;ls",      "/$(ls)" };
	struct channel *channel = mount_tree(*state);
	char text[8];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(channel_read_text(channel, paths[i], text, sizeof(text), NULL),
				 -PTVM_BAD_USAGE);
}

static void links_in_a_mount_lead_nowhere(void **state)
{
	struct fixture *fixture = *state;
	struct channel *channel = mount_tree(fixture);
	char text[8];

	fake_tree_link(&fixture->tree, "digits", "proc/link");
	fake_tree_link(&fixture->tree, "/etc", "etc");
	assert_true(channel_read_text(channel, "/proc/link", text, sizeof(text), NULL) < 0);
	assert_true(channel_read_text(channel, "/etc/passwd", text, sizeof(text), NULL) < 0);
	assert_string_equal(text, "");
}

static void only_regular_files_are_read_of_a_mount(void **state)
{
	struct fixture *fixture = *state;
	struct channel *channel = mount_tree(fixture);
	char path[PATH_MAX], text[8];

	(void)snprintf(path, sizeof(path), "%s/proc/fifo", fixture->tree.path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(channel_open(channel, "/proc/fifo", NULL), -PTVM_BAD_INPUT);
	assert_int_equal(channel_open(channel, "/proc", NULL), -PTVM_BAD_INPUT);
	assert_int_equal(channel_open(channel, "/proc/none", NULL), -PTVM_NOT_FOUND);
	assert_int_equal(channel_read_text(channel, "/proc/digits", text, sizeof(text), NULL), 7);
}

/* The kernel gives no size for it, and returns a page at a time. */
static void text_of_proc_is_read_whole(void **state)
{
	struct fixture *fixture = *state;
	char whole[100000], text[sizeof(whole)];
	FILE *file = fopen("/proc/kallsyms", "re");
	size_t size = file ? fread(whole, 1, sizeof(whole), file) : 0;

	if (file)
		(void)fclose(file);
	if (!size)
		skip();
	assert_int_equal(channel_mount_new("/", &fixture->channel, NULL), 0);
	assert_int_equal(channel_open(fixture->channel, "/proc/kallsyms", NULL), 0);
	assert_int_equal(channel_read(fixture->channel, 0, text, sizeof(text), NULL), size);
	assert_memory_equal(text, whole, size);
}

static void a_mount_must_be_there(void **state)
{
	struct channel *channel;

	assert_int_equal(channel_mount_new("/nonexistent", &channel, NULL), -PTVM_NOT_FOUND);
}

static void an_ssh_that_fails_is_a_failure(void **state)
{
	struct channel *channel = call_ssh(*state, "#!/bin/sh\necho some of it; exit 255\n");
	struct ptvm_error error = { 0 };
	char text[100];

	assert_int_equal(channel_read_text(channel, "/proc/kcore", text, sizeof(text), &error),
			 -PTVM_SYSTEM);
	assert_string_equal(error.message,
			    "/proc/kcore: ssh root@guest cannot read it (status 255)");
	assert_string_equal(text, "");
}

/* Bytes written to standard error while a missing file is read. */
static size_t bytes_said(struct channel *channel, struct ptvm_error *error)
{
	const int kept = dup(STDERR_FILENO), said = memfd_create("said", MFD_CLOEXEC);
	char text[8];
	int r;

	assert_true(said >= 0 && dup2(said, STDERR_FILENO) >= 0);
	r = channel_read_text(channel, "/lib/modules/6.1/modules.dep", text, sizeof(text), error);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	assert_int_equal(close(kept), 0);
	assert_int_equal(r, -PTVM_SYSTEM);
	r = (int)lseek(said, 0, SEEK_END);
	assert_int_equal(close(said), 0);
	return (size_t)r;
}

static void who_does_not_listen_to_errors_is_not_told_by_ssh(void **state)
{
	struct channel *channel = call_ssh(*state, honest_ssh);
	struct ptvm_error error = { 0 };

	assert_int_equal(bytes_said(channel, NULL), 0);
	assert_true(bytes_said(channel, &error) > 0);
}

static void an_ssh_that_does_not_end_is_ended(void **state)
{
	struct channel *channel =
		call_ssh(*state, "#!/bin/sh\ntrap '' TERM\nexec >&- 2>&-; sleep 30\n");
	char text[100];

	assert_int_equal(channel_read_text(channel, "/proc/kcore", text, sizeof(text), NULL),
			 -PTVM_SYSTEM);
}

static void an_endless_file_costs_what_was_asked_for(void **state)
{
	struct channel *channel = call_ssh(*state, "#!/bin/sh\nexec cat /dev/zero\n");
	char text[5000];

	assert_int_equal(channel_open(channel, "/proc/kcore", NULL), 0);
	assert_int_equal(channel_read(channel, 0, text, sizeof(text), NULL), sizeof(text));
	assert_int_equal(channel->bytes, sizeof(text));
}

static void ssh_needs_a_host(void **state)
{
	struct channel *channel;

	assert_int_equal(channel_ssh_new("", &channel, NULL), -PTVM_BAD_USAGE);
}

/* tear_down() checks that all handles were closed. */
static void assert_lie(void **state, enum fake_lie lie, int expected)
{
	struct fixture *fixture = *state;
	struct channel *channel = call_agent(fixture);
	char text[3];

	fixture->agent.lie = lie;
	assert_int_equal(channel_open(channel, "/proc/digits", NULL), 0);
	assert_int_equal(channel_read(channel, 2, text, sizeof(text), NULL), expected);
}

static void an_agent_that_does_not_answer_is_hung_up(void **state)
{
	assert_lie(state, FAKE_READ_FAILS, -PTVM_SYSTEM);
}

static void an_agent_that_seeks_elsewhere_is_not_believed(void **state)
{
	assert_lie(state, FAKE_SEEKS_WRONG, -PTVM_BAD_INPUT);
}

static void an_agent_that_says_too_much_is_cut_short(void **state)
{
	assert_lie(state, FAKE_READS_MORE, 3);
}

static void an_agent_without_sense_is_refused(void **state)
{
	assert_lie(state, FAKE_READS_NONSENSE, -PTVM_BAD_INPUT);
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
		WITH_FIXTURE(directories_of_a_mount_are_listed),
		WITH_FIXTURE(a_program_that_fails_in_the_guest_is_told),
		WITH_FIXTURE(large_files_come_in_pieces_of_a_mebibyte),
		WITH_FIXTURE(paths_that_could_mean_more_are_refused),
		WITH_FIXTURE(links_in_a_mount_lead_nowhere),
		WITH_FIXTURE(only_regular_files_are_read_of_a_mount),
		WITH_FIXTURE(text_of_proc_is_read_whole),
		cmocka_unit_test(a_mount_must_be_there),
		WITH_FIXTURE(an_ssh_that_fails_is_a_failure),
		WITH_FIXTURE(who_does_not_listen_to_errors_is_not_told_by_ssh),
		WITH_FIXTURE(an_ssh_that_does_not_end_is_ended),
		WITH_FIXTURE(an_endless_file_costs_what_was_asked_for),
		cmocka_unit_test(ssh_needs_a_host),
		WITH_FIXTURE(an_agent_that_does_not_answer_is_hung_up),
		WITH_FIXTURE(an_agent_that_seeks_elsewhere_is_not_believed),
		WITH_FIXTURE(an_agent_that_says_too_much_is_cut_short),
		WITH_FIXTURE(an_agent_without_sense_is_refused),
		WITH_FIXTURE(a_channel_ends_after_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
