#include "correlate/recording_copy.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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

#include "tests/fake_tree.h"

/* Directories of all sorts, copied to "to" in a tree of their own. */

struct fixture {
	struct fake_tree tree;
	char from[96], to[96];
	int descriptor; /* the lowest that is free */
};

/* Entries that can still be read of directories; less than 0: all of them. */
static int entries_left = -1;

/* Takes the place of that of libc, which has such a name where files can be large. */
struct dirent *readdir(DIR *directory)
{
	struct dirent *(*const next)(DIR *) = (__typeof__(next))dlsym(RTLD_NEXT, "readdir64");

	if (entries_left)
		return entries_left--, next(directory);
	errno = EIO;
	return NULL;
}

static int free_descriptor(void)
{
	int fd = open("/", O_PATH | O_CLOEXEC);

	assert_true(fd >= 0);
	(void)close(fd);
	return fd;
}

static int set_up(void **state)
{
	static struct fixture fixture;

	fake_tree_init(&fixture.tree);
	(void)snprintf(fixture.from, sizeof(fixture.from), "%s/from", fixture.tree.path);
	(void)snprintf(fixture.to, sizeof(fixture.to), "%s/to", fixture.tree.path);
	fixture.descriptor = free_descriptor();
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	fake_tree_deinit(&fixture->tree);
	assert_int_equal(free_descriptor(), fixture->descriptor);
	return 0;
}

static bool go_on(void *context, double done)
{
	assert_true(done < 0);
	++*(unsigned *)context;
	return true;
}

static bool stop(void *context, double done)
{
	return false;
}

static int copy(const struct fixture *f, const char *from, struct ptvm_error *error)
{
	unsigned calls = 0;
	const struct watch watch = { go_on, &calls };

	return recording_copy(from, f->to, &watch, error);
}

static void assert_copied(const struct fixture *f)
{
	struct ptvm_error error = { 0 };

	if (copy(f, f->from, &error))
		fail_msg("%s", error.message);
}

static void assert_refused(const struct fixture *f, int r, const char *why)
{
	struct ptvm_error error = { 0 };

	assert_int_equal(copy(f, f->from, &error), r);
	assert_non_null(strstr(error.message, why));
}

/* A path in the tree; good until the next one. */
static const char *path_of(const struct fixture *f, const char *name)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", f->tree.path, name);
	return path;
}

static void assert_holds(const char *path, const char *text)
{
	char found[64] = { 0 };
	FILE *file = fopen(path, "re");

	if (!file)
		fail_msg("%s is not there", path);
	(void)fread(found, 1, sizeof(found) - 1, file);
	(void)fclose(file);
	assert_string_equal(found, text);
}

static void assert_missing(const char *path)
{
	struct stat status;

	if (!lstat(path, &status))
		fail_msg("%s is there", path);
}

static void assert_mode(const char *path, mode_t mode)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, mode);
}

static void all_files_and_directories_are_copied(void **state)
{
	const struct fixture *f = *state;

	fake_tree_file(&f->tree, "trace", "from/data");
	fake_tree_file(&f->tree, "", "from/empty");
	fake_tree_file(&f->tree, "symbols", "from/kcore_dir__12/kallsyms");
	fake_tree_file(&f->tree, "hidden", "from/.dots/..too");
	assert_copied(f);
	assert_holds(path_of(f, "to/data"), "trace");
	assert_holds(path_of(f, "to/empty"), "");
	assert_holds(path_of(f, "to/kcore_dir__12/kallsyms"), "symbols");
	assert_holds(path_of(f, "to/.dots/..too"), "hidden");
}

static void a_single_file_becomes_a_directory(void **state)
{
	const struct fixture *f = *state;

	fake_tree_file(&f->tree, "trace", "from");
	fake_tree_file(&f->tree, "{}", "from.ptvm.json");
	fake_tree_file(&f->tree, "changes", "from.ptvm-undo");
	fake_tree_file(&f->tree, "other", "from.old");
	assert_copied(f);
	assert_holds(path_of(f, "to/data"), "trace");
	assert_holds(path_of(f, "to/data.ptvm.json"), "{}");
	assert_holds(path_of(f, "to/data.ptvm-undo"), "changes");
	assert_missing(path_of(f, "to/data.old"));
	assert_missing(path_of(f, "to/from.old"));
}

static void what_lies_beside_a_file_may_be_missing(void **state)
{
	const struct fixture *f = *state;

	fake_tree_file(&f->tree, "trace", "from");
	assert_copied(f);
	assert_holds(path_of(f, "to/data"), "trace");
	assert_missing(path_of(f, "to/data.ptvm.json"));
	assert_missing(path_of(f, "to/data.ptvm-undo"));
}

static void a_copy_is_writable_by_its_owner(void **state)
{
	const struct fixture *f = *state;
	mode_t mask = umask(022);

	fake_tree_file(&f->tree, "trace", "from/data");
	fake_tree_file(&f->tree, "symbols", "from/kcore_dir/kallsyms");
	assert_int_equal(chmod(path_of(f, "from/data"), 04440), 0);
	assert_int_equal(chmod(path_of(f, "from/kcore_dir/kallsyms"), 0777), 0);
	assert_int_equal(chmod(path_of(f, "from/kcore_dir"), 0500), 0);
	assert_copied(f);
	(void)umask(mask);
	assert_mode(path_of(f, "to/data"), 0640);
	assert_mode(path_of(f, "to/kcore_dir/kallsyms"), 0755);
	assert_mode(path_of(f, "to/kcore_dir"), 0700);
}

static void links_become_what_they_name(void **state)
{
	const struct fixture *f = *state;
	struct stat status;

	fake_tree_file(&f->tree, "symbols", "elsewhere/kallsyms");
	fake_tree_link(&f->tree, "../elsewhere/kallsyms", "from/link");
	fake_tree_link(&f->tree, "../elsewhere", "from/kcore_dir");
	assert_copied(f);
	assert_holds(path_of(f, "to/link"), "symbols");
	assert_holds(path_of(f, "to/kcore_dir/kallsyms"), "symbols");
	assert_int_equal(lstat(path_of(f, "to/link"), &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(lstat(path_of(f, "to/kcore_dir"), &status), 0);
	assert_true(S_ISDIR(status.st_mode));
}

static void further_down_a_link_to_a_directory_is_refused(void **state)
{
	const struct fixture *f = *state;

	fake_tree_link(&f->tree, "..", "from/kcore_dir/up");
	assert_refused(f, -PTVM_BAD_INPUT, "up: a link to a directory");
}

static void a_link_to_nothing_is_told(void **state)
{
	const struct fixture *f = *state;

	fake_tree_link(&f->tree, "nothing", "from/dangling");
	assert_refused(f, -PTVM_SYSTEM, "dangling");
}

static void what_is_neither_file_nor_directory_is_left_out(void **state)
{
	const struct fixture *f = *state;

	fake_tree_file(&f->tree, "trace", "from/data");
	assert_int_equal(mkfifo(path_of(f, "from/fifo"), 0600), 0);
	fake_tree_link(&f->tree, "/dev/zero", "from/endless");
	assert_copied(f);
	assert_holds(path_of(f, "to/data"), "trace");
	assert_missing(path_of(f, "to/fifo"));
	assert_missing(path_of(f, "to/endless"));
}

static void directories_may_be_7_deep(void **state)
{
	const struct fixture *f = *state;

	fake_tree_file(&f->tree, "bottom", "from/1/2/3/4/5/6/7/file");
	assert_copied(f);
	assert_holds(path_of(f, "to/1/2/3/4/5/6/7/file"), "bottom");
	recording_remove(f->to);
	fake_tree_file(&f->tree, "bottom", "from/1/2/3/4/5/6/7/8/file");
	assert_refused(f, -PTVM_BAD_INPUT, "too deep");
	assert_missing(path_of(f, "to/1/2/3/4/5/6/7/8"));
}

static void what_is_there_is_not_written_over(void **state)
{
	const struct fixture *f = *state;

	fake_tree_file(&f->tree, "trace", "from/data");
	fake_tree_file(&f->tree, "precious", "to/data");
	assert_refused(f, -PTVM_SYSTEM, f->to);
	recording_remove(f->from);
	fake_tree_file(&f->tree, "trace", "from");
	assert_refused(f, -PTVM_SYSTEM, f->to);
	assert_holds(path_of(f, "to/data"), "precious");
}

static void nothing_to_copy_is_told(void **state)
{
	const struct fixture *f = *state;
	struct ptvm_error error = { 0 };

	assert_int_equal(copy(f, f->from, &error), -PTVM_SYSTEM);
	assert_int_equal(error.sys_errno, ENOENT);
	assert_non_null(strstr(error.message, f->from));
	assert_missing(f->to);
}

/* A file of another file system, whose blocks cannot be shared: bytes go through memory. */
static int far_file(char *path, size_t path_size, const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("far", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	(void)snprintf(path, path_size, "/proc/self/fd/%d", fd);
	return fd;
}

static void large_files_are_copied_whole(void **state)
{
	const struct fixture *f = *state;
	const size_t size = ((size_t)3 << 20) + 1;
	uint8_t *bytes = malloc(size), *found = malloc(size + 1);
	unsigned calls = 0;
	const struct watch watch = { go_on, &calls };
	char path[64];
	int from, to;

	assert_true(bytes && found);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16);
	from = far_file(path, sizeof(path), bytes, size);
	assert_int_equal(recording_copy(path, f->to, &watch, NULL), 0);
	to = open(path_of(f, "to/data"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(to, found, size + 1), size);
	assert_memory_equal(found, bytes, size);
	assert_true(calls > 0);
	(void)close(from);
	(void)close(to);
	free(bytes);
	free(found);
}

static void a_directory_that_cannot_be_read_to_its_end_is_told(void **state)
{
	const struct fixture *f = *state;
	struct ptvm_error error = { 0 };
	unsigned calls = 0;
	const struct watch watch = { go_on, &calls };
	int r;

	fake_tree_file(&f->tree, "trace", "from/data");
	entries_left = 2;
	r = recording_copy(f->from, f->to, &watch, &error);
	entries_left = -1;
	assert_int_equal(r, -PTVM_SYSTEM);
	assert_int_equal(error.sys_errno, EIO);
	assert_missing(f->to);
}

static void a_copy_that_is_stopped_is_removed(void **state)
{
	const struct fixture *f = *state;
	const struct watch watch = { stop, NULL };
	struct ptvm_error error = { 0 };
	char path[64];
	int from = far_file(path, sizeof(path), (const uint8_t *)"trace", 5);

	assert_int_equal(recording_copy(path, f->to, &watch, &error), -PTVM_END);
	assert_string_equal(error.message, "");
	assert_missing(f->to);
	(void)close(from);
}

static void assert_no_copy_in_itself(const struct fixture *f, const char *to)
{
	struct ptvm_error error = { 0 };
	unsigned calls = 0;
	const struct watch watch = { go_on, &calls };

	assert_int_equal(recording_copy(f->from, path_of(f, to), &watch, &error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, path_of(f, to)));
	assert_missing(path_of(f, to));
}

/* It would be copied as well, and that copy again. */
static void no_copy_lies_in_the_recording_itself(void **state)
{
	const struct fixture *f = *state;

	fake_tree_file(&f->tree, "trace", "from/data");
	fake_tree_file(&f->tree, "symbols", "from/kcore_dir/kallsyms");
	fake_tree_link(&f->tree, "from/kcore_dir", "link");
	assert_no_copy_in_itself(f, "from/copy");
	assert_no_copy_in_itself(f, "from/kcore_dir/copy");
	assert_no_copy_in_itself(f, "link/copy");
	assert_copied(f);
}

static void removing_follows_no_link(void **state)
{
	const struct fixture *f = *state;

	fake_tree_file(&f->tree, "precious", "elsewhere/file");
	fake_tree_file(&f->tree, "trace", "to/1/2/data");
	fake_tree_link(&f->tree, "../../elsewhere", "to/1/link");
	recording_remove(f->to);
	assert_missing(f->to);
	assert_holds(path_of(f, "elsewhere/file"), "precious");
	recording_remove(f->to);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_files_and_directories_are_copied),
		TEST(a_single_file_becomes_a_directory),
		TEST(what_lies_beside_a_file_may_be_missing),
		TEST(a_copy_is_writable_by_its_owner),
		TEST(links_become_what_they_name),
		TEST(further_down_a_link_to_a_directory_is_refused),
		TEST(a_link_to_nothing_is_told),
		TEST(what_is_neither_file_nor_directory_is_left_out),
		TEST(directories_may_be_7_deep),
		TEST(what_is_there_is_not_written_over),
		TEST(nothing_to_copy_is_told),
		TEST(large_files_are_copied_whole),
		TEST(a_directory_that_cannot_be_read_to_its_end_is_told),
		TEST(a_copy_that_is_stopped_is_removed),
		TEST(no_copy_lies_in_the_recording_itself),
		TEST(removing_follows_no_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
