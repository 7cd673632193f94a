#include "correlate/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/fake_tree.h"

/* Writing that stops half way, and the directory that a name is in. */

enum { FD = 77, AT = 1000 };

/* A disk that takes three bytes at a time. */
struct slow_disk {
	struct file_io io;
	char bytes[AT + 32];
	unsigned calls;
	unsigned interrupted; /* the calls below this are */
	int fails;            /* with this errno those after */
	int synced;           /* descriptor */
	ino_t inode;          /* of that */
};

static struct slow_disk *disk_of(const struct file_io *io)
{
	return (struct slow_disk *)(uintptr_t)io;
}

static ssize_t write_some(const struct file_io *io, int fd, const void *bytes, size_t size,
			  off_t offset)
{
	struct slow_disk *disk = disk_of(io);

	assert_int_equal(fd, FD);
	assert_true(size > 0);
	if (disk->calls++ < disk->interrupted) {
		errno = EINTR;
		return -1;
	}
	if (disk->fails) {
		errno = disk->fails;
		return -1;
	}
	size = size < 3 ? size : 3;
	memcpy(disk->bytes + offset, bytes, size);
	return (ssize_t)size;
}

static int note_sync(const struct file_io *io, int fd)
{
	struct slow_disk *disk = disk_of(io);
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	disk->inode = status.st_ino;
	disk->synced++;
	errno = disk->fails;
	return disk->fails ? -1 : 0;
}

static void what_is_written_in_part_is_gone_on_with(void **state)
{
	struct slow_disk disk = { .io = { .write_at = write_some } };

	assert_int_equal(file_io_write(&disk.io, FD, "abcdefgh", 8, AT), 0);
	assert_memory_equal(disk.bytes + AT - 1, "\0abcdefgh\0", 10);
	assert_int_equal(disk.calls, 3);
}

static void an_interrupted_call_is_repeated(void **state)
{
	struct slow_disk disk = { .io = { .write_at = write_some }, .interrupted = 2 };

	assert_int_equal(file_io_write(&disk.io, FD, "abcd", 4, AT), 0);
	assert_string_equal(disk.bytes + AT, "abcd");
}

static void another_failure_ends_it(void **state)
{
	struct slow_disk disk = { .io = { .write_at = write_some }, .fails = ENOSPC };

	assert_int_equal(file_io_write(&disk.io, FD, "abcd", 4, AT), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(disk.calls, 1);
}

static void nothing_needs_no_call(void **state)
{
	struct slow_disk disk = { .io = { .write_at = write_some }, .fails = EIO };

	assert_int_equal(file_io_write(&disk.io, FD, NULL, 0, AT), 0);
	assert_int_equal(disk.calls, 0);
}

static void assert_syncs(const char *path, const char *directory)
{
	struct slow_disk disk = { .io = { .sync = note_sync } };
	struct stat status;

	assert_int_equal(stat(directory, &status), 0);
	assert_int_equal(file_io_sync_directory(&disk.io, path), 0);
	assert_int_equal(disk.synced, 1);
	assert_int_equal(disk.inode, status.st_ino);
}

static void a_name_lasts_when_its_directory_does(void **state)
{
	struct fake_tree tree;
	char path[96];

	fake_tree_init(&tree);
	(void)snprintf(path, sizeof(path), "%s/not-there", tree.path);
	assert_syncs(path, tree.path);
	assert_syncs("not-there", ".");
	assert_syncs("/not-there", "/");
	fake_tree_deinit(&tree);
}

static void a_directory_that_cannot_be_synced_is_told(void **state)
{
	struct slow_disk disk = { .io = { .sync = note_sync }, .fails = EIO };

	assert_int_equal(file_io_sync_directory(&disk.io, "/not-there"), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(file_io_sync_directory(&disk.io, "/proc/none/not-there"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(file_io_sync_directory(&disk.io, "/proc/version/not-there"), -1);
	assert_int_equal(errno, ENOTDIR);
	assert_int_equal(disk.synced, 1);
}

static void the_systems_calls_do_what_they_are_called(void **state)
{
	const struct file_io *io = &file_io_system;
	char from[96], to[96], bytes[4] = { 0 };
	struct fake_tree tree;
	int fd;

	fake_tree_init(&tree);
	(void)snprintf(from, sizeof(from), "%s/from", tree.path);
	(void)snprintf(to, sizeof(to), "%s/to", tree.path);
	fake_tree_file(&tree, "abc", "from");
	fd = open(from, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(io->write_at(io, fd, "x", 1, 1), 1);
	assert_int_equal(io->sync(io, fd), 0);
	assert_int_equal(io->sync(io, -1), -1);
	assert_int_equal(io->rename(io, from, to), 0);
	assert_int_equal(access(from, F_OK), -1);
	assert_int_equal(pread(fd, bytes, 3, 0), 3);
	assert_string_equal(bytes, "axc");
	assert_int_equal(io->remove(io, to), 0);
	assert_int_equal(access(to, F_OK), -1);
	(void)close(fd);
	fake_tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_in_part_is_gone_on_with),
		cmocka_unit_test(an_interrupted_call_is_repeated),
		cmocka_unit_test(another_failure_ends_it),
		cmocka_unit_test(nothing_needs_no_call),
		cmocka_unit_test(a_name_lasts_when_its_directory_does),
		cmocka_unit_test(a_directory_that_cannot_be_synced_is_told),
		cmocka_unit_test(the_systems_calls_do_what_they_are_called),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
