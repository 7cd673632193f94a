#include "host/record/control_fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/fake_tree.h"

struct bench {
	struct fake_tree tree;
	char control[100], ack[100], text[256];
	struct control_fifo fifo;
	struct ptvm_error error;
	int writer, reader;
};

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	(void)snprintf(bench.control, sizeof(bench.control), "%s/control", bench.tree.path);
	(void)snprintf(bench.ack, sizeof(bench.ack), "%s/ack", bench.tree.path);
	assert_int_equal(mkfifo(bench.control, 0600), 0);
	assert_int_equal(mkfifo(bench.ack, 0600), 0);
	(void)snprintf(bench.text, sizeof(bench.text), "fifo:%s,%s", bench.control, bench.ack);
	assert_int_equal(control_fifo_open(bench.text, &bench.fifo, NULL), 0);
	bench.writer = open(bench.control, O_WRONLY | O_NONBLOCK);
	bench.reader = open(bench.ack, O_RDONLY | O_NONBLOCK);
	assert_true(bench.writer >= 0 && bench.reader >= 0);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	control_fifo_close(&bench->fifo);
	(void)close(bench->writer);
	(void)close(bench->reader);
	fake_tree_deinit(&bench->tree);
	return 0;
}

static void say(const struct bench *bench, const char *text)
{
	assert_int_equal(write(bench->writer, text, strlen(text)), strlen(text));
}

static void commands_come_one_by_one(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_NONE);
	say(bench, "enable\ndisable\nsnapshot\nping\nstop\n");
	for (int i = CONTROL_ENABLE; i <= CONTROL_STOP; i++)
		assert_int_equal(control_fifo_next(&bench->fifo), i);
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_NONE);
}

static void half_a_line_waits_for_its_end(void **state)
{
	struct bench *bench = *state;

	say(bench, "ena");
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_NONE);
	say(bench, "ble");
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_NONE);
	say(bench, "\npi");
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_ENABLE);
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_NONE);
	say(bench, "ng\n");
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_PING);
}

static void other_words_are_unknown(void **state)
{
	static const char *const words[] = { "\n", "Enable\n", "enable \n", "enabled\n", "pin\n" };
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		say(bench, words[i]);
		assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_UNKNOWN);
		assert_int_equal(strncmp(bench->fifo.line, words[i], strlen(words[i]) - 1), 0);
	}
}

static void a_line_without_end_takes_no_more_room(void **state)
{
	struct bench *bench = *state;

	for (int i = 0; i < 1000; i++) {
		say(bench, "enable");
		assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_NONE);
	}
	say(bench, "\nstop\n");
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_UNKNOWN);
	assert_int_equal(strlen(bench->fifo.line), sizeof(bench->fifo.line) - 1);
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_STOP);
}

static void a_writer_may_come_and_go(void **state)
{
	struct bench *bench = *state;

	say(bench, "ping\n");
	(void)close(bench->writer);
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_PING);
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_NONE);
	bench->writer = open(bench->control, O_WRONLY | O_NONBLOCK);
	say(bench, "stop\n");
	assert_int_equal(control_fifo_next(&bench->fifo), CONTROL_STOP);
}

static void acks_are_told_to_who_listens(void **state)
{
	struct bench *bench = *state;
	char answer[16] = "";

	control_fifo_ack(&bench->fifo);
	assert_int_equal(read(bench->reader, answer, sizeof(answer)), 4);
	assert_string_equal(answer, "ack\n");
}

static void nobody_has_to_listen(void **state)
{
	struct bench *bench = *state;

	/* With a full pipe, or without a reader, it must neither wait nor die. */
	for (int i = 0; i < 100000; i++)
		control_fifo_ack(&bench->fifo);
	(void)close(bench->reader);
	control_fifo_ack(&bench->fifo);
	bench->reader = open(bench->ack, O_RDONLY | O_NONBLOCK);
}

/* Others may have it open, too, such as a log that all append to. */
static void a_descriptor_keeps_its_flags(void **state)
{
	struct control_fifo fifo;
	int fds[2], others;
	char text[32];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_APPEND), 0);
	others = dup(fds[1]);
	(void)snprintf(text, sizeof(text), "fd:%d,%d", fds[0], fds[1]);
	assert_int_equal(control_fifo_open(text, &fifo, NULL), 0);
	assert_int_equal(fcntl(others, F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND | O_NONBLOCK);
	control_fifo_close(&fifo);
	(void)close(others);
}

static void descriptors_are_taken_over(void **state)
{
	struct bench *bench = *state;
	struct control_fifo fifo;
	int fds[2];
	char text[32];

	assert_int_equal(pipe(fds), 0);
	(void)snprintf(text, sizeof(text), "fd:%d", fds[0]);
	assert_int_equal(control_fifo_open(text, &fifo, NULL), 0);
	assert_int_equal(control_fifo_next(&fifo), CONTROL_NONE);
	assert_int_equal(write(fds[1], "stop\n", 5), 5);
	assert_int_equal(control_fifo_next(&fifo), CONTROL_STOP);
	control_fifo_ack(&fifo);
	control_fifo_close(&fifo);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	control_fifo_close(&fifo);
	(void)close(fds[1]);
	assert_int_equal(control_fifo_next(&fifo), CONTROL_NONE);
	(void)bench;
}

static void it_is_closed_where_the_commands_end(void **state)
{
	struct bench *bench = *state;
	struct control_fifo fifo;
	char text[32];
	int fd;

	fake_tree_file(&bench->tree, "ping\nstop\n", "commands");
	(void)snprintf(bench->text, sizeof(bench->text), "%s/commands", bench->tree.path);
	fd = open(bench->text, O_RDONLY);
	(void)snprintf(text, sizeof(text), "fd:%d", fd);
	assert_int_equal(control_fifo_open(text, &fifo, NULL), 0);
	assert_int_equal(control_fifo_next(&fifo), CONTROL_PING);
	assert_int_equal(control_fifo_next(&fifo), CONTROL_STOP);
	assert_int_equal(fifo.control, fd);
	assert_int_equal(control_fifo_next(&fifo), CONTROL_NONE);
	assert_int_equal(fifo.control, -1);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void what_is_no_fifo_is_told(void **state)
{
	static const char *const wrong[] = { "",     "fifo",  "file:x", "fifo:",         "fd:",
					     "fd:x", "fd:1x", "fd:-1",  "fd:99999999999" };
	struct bench *bench = *state;
	struct control_fifo fifo;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(control_fifo_open(wrong[i], &fifo, &bench->error),
				 -PTVM_BAD_USAGE);
		assert_non_null(strstr(bench->error.message, "--control"));
		control_fifo_close(&fifo);
	}
	bench->error = (struct ptvm_error){ 0 };
	assert_int_equal(control_fifo_open("fifo:/nowhere", &fifo, &bench->error), -PTVM_SYSTEM);
	assert_string_equal(bench->error.message, "/nowhere: no such FIFO: mkfifo makes one");
	control_fifo_close(&fifo);
	bench->error = (struct ptvm_error){ 0 };
	assert_int_equal(control_fifo_open("fifo:/dev/null", &fifo, &bench->error), -PTVM_SYSTEM);
	assert_string_equal(bench->error.message, "/dev/null: not a FIFO, as mkfifo makes one");
	control_fifo_close(&fifo);
	assert_int_equal(control_fifo_open("fd:4000", &fifo, NULL), -PTVM_SYSTEM);
	control_fifo_close(&fifo);
	(void)snprintf(bench->text, sizeof(bench->text), "fifo:%s,/nowhere", bench->control);
	assert_int_equal(control_fifo_open(bench->text, &fifo, NULL), -PTVM_SYSTEM);
	control_fifo_close(&fifo);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(commands_come_one_by_one), TEST(half_a_line_waits_for_its_end),
		TEST(other_words_are_unknown),  TEST(a_line_without_end_takes_no_more_room),
		TEST(a_writer_may_come_and_go), TEST(acks_are_told_to_who_listens),
		TEST(nobody_has_to_listen),     TEST(descriptors_are_taken_over),
		TEST(nobody_has_to_listen),     TEST(a_descriptor_keeps_its_flags),
		TEST(what_is_no_fifo_is_told),  TEST(it_is_closed_where_the_commands_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
