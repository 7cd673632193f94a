#include "correlate/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/failing_io.h"
#include "tests/fake_tree.h"

/* Journals written and read back, and what is not believed. What becomes of the recording is in
 * test_offset_apply.c. */

enum {
	FILE_SIZE = 1000000,
	HEADER = 40,
	ENTRY = 24,
	STATE_AT = 12,
	SIZE_AT = 16,
	COUNT_AT = 24,
	SUM_AT = 32,
	BYTES_MAX = HEADER + 8 * ENTRY,
	MANY = 9001, /* more than fit into any buffer of it */
};

struct fixture {
	struct fake_tree tree;
	char path[96], draft[104];
};

static int set_up(void **state)
{
	static struct fixture fixture;

	fake_tree_init(&fixture.tree);
	(void)snprintf(fixture.path, sizeof(fixture.path), "%s/undo", fixture.tree.path);
	(void)snprintf(fixture.draft, sizeof(fixture.draft), "%s.new", fixture.path);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	fake_tree_deinit(&fixture->tree);
	return 0;
}

static bool is_there(const char *path)
{
	struct stat status;

	return !lstat(path, &status);
}

/* Entry `i` of any journal here: of 1 to 8 bytes. */
static struct journal_entry entry_of(uint64_t i)
{
	struct journal_entry entry = { .offset = i * 100, .size = (uint8_t)(1 + i % 8) };

	for (uint8_t k = 0; k < entry.size; k++) {
		entry.before[k] = (uint8_t)(i + k);
		entry.after[k] = (uint8_t) ~(i + k);
	}
	return entry;
}

static int write_with(const struct fixture *f, uint64_t count, const struct file_io *io,
		      struct ptvm_error *error)
{
	struct journal_writer writer;
	int r = journal_begin(&writer, f->path, FILE_SIZE, io, error);

	for (uint64_t i = 0; i < count && !r; i++) {
		struct journal_entry entry = entry_of(i);

		r = journal_add(&writer, &entry, error);
	}
	if (!r)
		r = journal_commit(&writer, error);
	journal_end(&writer);
	return r;
}

static void write_journal(const struct fixture *f, uint64_t count)
{
	assert_int_equal(write_with(f, count, &file_io_system, NULL), 0);
}

static void assert_state(const struct fixture *f, enum journal_state state)
{
	struct journal journal;

	assert_int_equal(journal_open(f->path, &journal, NULL), 0);
	assert_int_equal(journal.state, state);
	journal_close(&journal);
}

static void assert_entries(const struct fixture *f, uint64_t count)
{
	struct journal journal;

	assert_int_equal(journal_open(f->path, &journal, NULL), 0);
	assert_int_equal(journal.state, JOURNAL_OPEN);
	assert_int_equal(journal.file_size, FILE_SIZE);
	assert_int_equal(journal.count, count);
	for (uint64_t i = 0; i < count; i++) {
		struct journal_entry found = journal_entry(&journal, i), entry = entry_of(i);

		assert_int_equal(found.offset, entry.offset);
		assert_int_equal(found.size, entry.size);
		assert_memory_equal(found.before, entry.before, sizeof(entry.before));
		assert_memory_equal(found.after, entry.after, sizeof(entry.after));
	}
	journal_close(&journal);
	assert_int_equal(journal.state, JOURNAL_NONE);
}

static void what_is_written_is_read_back(void **state)
{
	const struct fixture *f = *state;
	static const uint64_t counts[] = { 0, 1, 2, MANY };

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		write_journal(f, counts[i]);
		assert_entries(f, counts[i]);
		assert_false(is_there(f->draft));
	}
}

static void every_number_of_entries_around_a_buffer_is_kept(void **state)
{
	const struct fixture *f = *state;
	const uint64_t full = (64 << 10) / ENTRY;

	for (uint64_t count = full - 1; count <= full + 1; count++) {
		write_journal(f, count);
		assert_entries(f, count);
	}
}

static void only_its_owner_may_read_it(void **state)
{
	const struct fixture *f = *state;
	struct stat status;

	write_journal(f, 1);
	assert_int_equal(stat(f->path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
}

static void what_is_not_committed_never_was(void **state)
{
	const struct fixture *f = *state;
	const struct journal_entry entry = entry_of(1);
	struct journal_writer writer;
	int fd;

	assert_int_equal(journal_begin(&writer, f->path, FILE_SIZE, &file_io_system, NULL), 0);
	assert_int_equal(journal_add(&writer, &entry, NULL), 0);
	assert_false(is_there(f->path));
	fd = writer.fd;
	journal_end(&writer);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_false(is_there(f->draft));
	assert_state(f, JOURNAL_NONE);
	journal_end(&writer);
}

static void a_failing_call_leaves_no_draft(void **state)
{
	const struct fixture *f = *state;
	struct failing_io counting = failing_io_after(FILE_SIZE, false);
	long calls = 0;
	int r;

	assert_int_equal(write_with(f, MANY, &counting.io, NULL), 0);
	do {
		struct failing_io failing = failing_io_after(calls++, false);
		struct ptvm_error error = { 0 };

		(void)unlink(f->path);
		r = write_with(f, MANY, &failing.io, &error);
		if (r) {
			assert_int_equal(r, -PTVM_SYSTEM);
			assert_int_equal(error.sys_errno, ENOSPC);
			assert_non_null(strstr(error.message, f->path));
		}
		assert_false(is_there(f->draft));
	} while (r);
	assert_int_equal(calls, FILE_SIZE - counting.left + 1);
	assert_entries(f, MANY);
}

/* A journal is believed: no one may lead us to write one elsewhere. */
static void the_draft_is_written_through_no_link(void **state)
{
	const struct fixture *f = *state;
	struct ptvm_error error = { 0 };
	struct journal_writer writer;
	char other[96];

	fake_tree_file(&f->tree, "precious", "other");
	(void)snprintf(other, sizeof(other), "%s/other", f->tree.path);
	fake_tree_link(&f->tree, other, "undo.new");
	assert_int_equal(journal_begin(&writer, f->path, FILE_SIZE, &file_io_system, &error),
			 -PTVM_SYSTEM);
	assert_int_equal(error.sys_errno, ELOOP);
	journal_end(&writer);
	assert_true(is_there(f->draft));
}

static void a_draft_that_was_left_is_replaced(void **state)
{
	const struct fixture *f = *state;
	static const char text[BYTES_MAX] = "left by a run that was killed";

	fake_tree_bytes(&f->tree, text, sizeof(text), "undo.new");
	write_journal(f, 1);
	assert_entries(f, 1);
}

static void where_nothing_can_be_written_says_which_file(void **state)
{
	struct ptvm_error error = { 0 };
	struct journal_writer writer;

	assert_int_equal(
		journal_begin(&writer, "/proc/none/undo", FILE_SIZE, &file_io_system, &error),
		-PTVM_SYSTEM);
	assert_non_null(strstr(error.message, "/proc/none/undo.new"));
	journal_end(&writer);
}

static void a_mark_says_how_far_the_changes_are(void **state)
{
	const struct fixture *f = *state;

	write_journal(f, 2);
	assert_int_equal(journal_mark(f->path, JOURNAL_DONE, &file_io_system, NULL), 0);
	assert_state(f, JOURNAL_DONE);
	assert_int_equal(journal_mark(f->path, JOURNAL_OPEN, &file_io_system, NULL), 0);
	assert_entries(f, 2);
}

static void a_mark_that_fails_is_told(void **state)
{
	const struct fixture *f = *state;
	struct ptvm_error error = { 0 };

	assert_int_equal(journal_mark(f->path, JOURNAL_DONE, &file_io_system, &error),
			 -PTVM_SYSTEM);
	assert_int_equal(error.sys_errno, ENOENT);
	write_journal(f, 2);
	for (long calls = 0; calls < 2; calls++) {
		struct failing_io failing = failing_io_after(calls, false);

		error = (struct ptvm_error){ 0 };
		assert_int_equal(journal_mark(f->path, JOURNAL_DONE, &failing.io, &error),
				 -PTVM_SYSTEM);
		assert_int_equal(error.sys_errno, ENOSPC);
		assert_non_null(strstr(error.message, f->path));
	}
}

static void without_a_file_there_is_no_journal(void **state)
{
	const struct fixture *f = *state;

	assert_state(f, JOURNAL_NONE);
}

static void assert_open_refuses(const struct fixture *f, const char *why)
{
	struct ptvm_error error = { 0 };
	struct journal journal;

	assert_int_equal(journal_open(f->path, &journal, &error), -PTVM_BAD_INPUT);
	assert_int_equal(journal.state, JOURNAL_NONE);
	assert_null(journal.file.data);
	assert_non_null(strstr(error.message, f->path));
	assert_non_null(strstr(error.message, why));
}

static void what_is_no_journal_is_refused_by_name(void **state)
{
	const struct fixture *f = *state;

	fake_tree_file(&f->tree, "", "undo");
	assert_open_refuses(f, "not an undo journal");
	fake_tree_file(&f->tree, "ptvmundo", "undo");
	assert_open_refuses(f, "not an undo journal");
	(void)unlink(f->path);
	assert_int_equal(mkdir(f->path, 0700), 0);
	assert_open_refuses(f, "");
}

/* The bytes of a journal of `count` entries. */
static size_t bytes_of(const struct fixture *f, uint64_t count, uint8_t *ret)
{
	int fd;
	ssize_t size;

	write_journal(f, count);
	fd = open(f->path, O_RDONLY | O_CLOEXEC);
	size = read(fd, ret, BYTES_MAX);
	(void)close(fd);
	assert_int_equal(size, HEADER + count * ENTRY);
	return (size_t)size;
}

/* The checksum that docs/recording-format.md describes, put in place. */
static void seal(uint8_t *bytes, size_t size)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (size_t i = HEADER; i < size; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3;
	memcpy(bytes + SUM_AT, &sum, 8);
}

static int read_bytes(const uint8_t *bytes, size_t size)
{
	struct ptvm_error error = { 0 };
	struct journal journal;
	int r = journal_read((struct bytes){ bytes, size }, &journal, &error);

	assert_int_equal(journal.state == JOURNAL_NONE, r != 0);
	assert_int_equal(error.message[0] == 0, r == 0);
	return r;
}

static void assert_damaged(const uint8_t *bytes, size_t size)
{
	assert_int_equal(read_bytes(bytes, size), -PTVM_BAD_INPUT);
}

static void any_byte_that_changes_is_noticed(void **state)
{
	uint8_t bytes[BYTES_MAX];
	size_t size = bytes_of(*state, 3, bytes);

	assert_int_equal(read_bytes(bytes, size), 0);
	for (size_t at = 0; at < size; at++) {
		if (at >= SIZE_AT && at < SIZE_AT + 8)
			continue; /* larger does no harm, smaller is tried below */
		bytes[at] ^= 0x40;
		assert_damaged(bytes, size);
		bytes[at] ^= 0x40;
	}
}

static void any_other_length_is_noticed(void **state)
{
	uint8_t bytes[BYTES_MAX] = { 0 };
	size_t size = bytes_of(*state, 3, bytes);

	for (size_t wrong = 0; wrong < sizeof(bytes); wrong++)
		if (wrong != size)
			assert_damaged(bytes, wrong);
}

static void a_count_that_overflows_is_refused(void **state)
{
	/* times the size of an entry, both are the right size modulo 2^64 */
	static const uint64_t counts[] = { ((uint64_t)1 << 61) + 2, ((uint64_t)7 << 61) + 2 };
	uint8_t bytes[BYTES_MAX];
	size_t size = bytes_of(*state, 2, bytes);

	for (size_t i = 0; i < 2; i++) {
		memcpy(bytes + COUNT_AT, &counts[i], 8);
		assert_damaged(bytes, size);
	}
}

static void assert_state_number(uint8_t *bytes, size_t size, uint32_t number, int r)
{
	memcpy(bytes + STATE_AT, &number, 4);
	assert_int_equal(read_bytes(bytes, size), r);
}

static void a_state_is_open_or_done(void **state)
{
	uint8_t bytes[BYTES_MAX];
	size_t size = bytes_of(*state, 1, bytes);

	assert_state_number(bytes, size, 0, -PTVM_BAD_INPUT);
	assert_state_number(bytes, size, JOURNAL_OPEN, 0);
	assert_state_number(bytes, size, JOURNAL_DONE, 0);
	assert_state_number(bytes, size, JOURNAL_DONE + 1, -PTVM_BAD_INPUT);
}

/* A journal with the right checksum whose only entry is for these bytes of the file. */
static int read_entry(const struct fixture *f, uint64_t offset, uint64_t size, uint64_t file_size)
{
	uint64_t where = offset | size << 56;
	uint8_t bytes[BYTES_MAX];
	size_t whole = bytes_of(f, 1, bytes);

	memcpy(bytes + HEADER, &where, 8);
	memcpy(bytes + SIZE_AT, &file_size, 8);
	seal(bytes, whole);
	return read_bytes(bytes, whole);
}

static void an_entry_lies_within_the_file(void **state)
{
	const uint64_t far = ((uint64_t)1 << 56) - 1;

	assert_int_equal(read_entry(*state, 92, 8, 100), 0);
	assert_int_equal(read_entry(*state, 93, 8, 100), -PTVM_BAD_INPUT);
	assert_int_equal(read_entry(*state, 99, 1, 100), 0);
	assert_int_equal(read_entry(*state, 100, 1, 100), -PTVM_BAD_INPUT);
	assert_int_equal(read_entry(*state, 101, 1, 100), -PTVM_BAD_INPUT);
	assert_int_equal(read_entry(*state, far, 8, 4), -PTVM_BAD_INPUT);
	assert_int_equal(read_entry(*state, far, 1, UINT64_MAX), 0);
}

static void an_entry_has_1_to_8_bytes(void **state)
{
	assert_int_equal(read_entry(*state, 0, 0, 100), -PTVM_BAD_INPUT);
	assert_int_equal(read_entry(*state, 0, 1, 100), 0);
	assert_int_equal(read_entry(*state, 0, 9, 100), -PTVM_BAD_INPUT);
	assert_int_equal(read_entry(*state, 0, 255, UINT64_MAX), -PTVM_BAD_INPUT);
}

static void a_version_to_come_is_told(void **state)
{
	struct ptvm_error error = { 0 };
	uint8_t bytes[BYTES_MAX];
	size_t size = bytes_of(*state, 1, bytes);
	struct journal journal;

	bytes[8] = 2;
	assert_int_equal(journal_read((struct bytes){ bytes, size }, &journal, &error),
			 -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, "version 2"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_written_is_read_back),
		TEST(every_number_of_entries_around_a_buffer_is_kept),
		TEST(only_its_owner_may_read_it),
		TEST(what_is_not_committed_never_was),
		TEST(a_failing_call_leaves_no_draft),
		TEST(the_draft_is_written_through_no_link),
		TEST(a_draft_that_was_left_is_replaced),
		cmocka_unit_test(where_nothing_can_be_written_says_which_file),
		TEST(a_mark_says_how_far_the_changes_are),
		TEST(a_mark_that_fails_is_told),
		TEST(without_a_file_there_is_no_journal),
		TEST(what_is_no_journal_is_refused_by_name),
		TEST(any_byte_that_changes_is_noticed),
		TEST(any_other_length_is_noticed),
		TEST(a_count_that_overflows_is_refused),
		TEST(a_state_is_open_or_done),
		TEST(an_entry_lies_within_the_file),
		TEST(an_entry_has_1_to_8_bytes),
		TEST(a_version_to_come_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
