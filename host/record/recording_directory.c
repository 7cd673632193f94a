#include "host/record/recording_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/directory.h"

/*
 * What a recording consists of, ours or perf's, and what is in its directories. A kernel's
 * directory has another name until it is complete, and keeps it where the recorder was killed
 * (output_directory.h).
 */
static const char *const parts[] = { "data", "data.*", "kcore_dir", "kcore_dir.*", "kcore_dir__*" };
static const char *const copies[] = { "kcore", "kcore.*", "kallsyms", "modules", "guest.json" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *join(const char *directory, const char *name, char path[PATH_MAX])
{
	const int length = snprintf(path, PATH_MAX, "%s/%s", directory, name);

	return length >= 0 && length < PATH_MAX ? path : "";
}

static bool is_recording(const char *path)
{
	DIR *directory = directory_open(AT_FDCWD, path);
	bool r = directory && directory_holds_only(AT_FDCWD, path, parts, COUNT(parts));
	const struct dirent *entry;

	while (r && (entry = readdir(directory)))
		r = directory_is_dots(entry->d_name) ||
		    directory_holds_only(dirfd(directory), entry->d_name, copies, COUNT(copies));
	if (directory)
		(void)closedir(directory);
	return r;
}

/* Remove the files of a directory that has no other directories in it. */
static void remove_files(int at, const char *name)
{
	DIR *directory = directory_open(at, name);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (!directory_is_dots(entry->d_name))
			(void)unlinkat(dirfd(directory), entry->d_name, 0);
	if (directory)
		(void)closedir(directory);
}

static int remove_recording(const char *path, struct ptvm_error *error)
{
	DIR *directory = directory_open(AT_FDCWD, path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (directory_is_dots(entry->d_name) ||
		    !unlinkat(dirfd(directory), entry->d_name, 0))
			continue;
		remove_files(dirfd(directory), entry->d_name);
		(void)unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
	}
	if (directory)
		(void)closedir(directory);
	return rmdir(path) ? ptvm_fail_errno(error, "%s: cannot remove it", path) : 0;
}

/* Is it a name that mkdtemp() made? One that ends in small letters only may end in a word, such as
 * "backup". */
static bool is_half_copy(const char *name)
{
	static const char *const patterns[] = {
		"kcore_dir.[0-9A-Za-z][0-9A-Za-z][0-9A-Za-z][0-9A-Za-z][0-9A-Za-z][0-9A-Za-z]",
		"kcore_dir__*[0-9].[0-9A-Za-z][0-9A-Za-z][0-9A-Za-z][0-9A-Za-z][0-9A-Za-z]"
		"[0-9A-Za-z]",
	};
	const char *suffix = strrchr(name, '.');

	return directory_matches(name, patterns, COUNT(patterns)) &&
	       strspn(suffix + 1, "abcdefghijklmnopqrstuvwxyz") < strlen(suffix + 1);
}

void recording_directory_drop_halves(const char *path)
{
	DIR *directory = directory_open(AT_FDCWD, path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (!is_half_copy(entry->d_name) ||
		    !directory_holds_only(dirfd(directory), entry->d_name, copies, COUNT(copies)))
			continue;
		remove_files(dirfd(directory), entry->d_name);
		(void)unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
	}
	if (directory)
		(void)closedir(directory);
}

/* Keep other recorders from it, as long as the descriptor that is returned is open. Without effect
 * on file systems that have no locks. */
static int lock(const char *path, struct ptvm_error *error)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return ptvm_fail_errno(error, "%s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return ptvm_fail(error, PTVM_SYSTEM, "%s is in use by another ptvm record", path);
	return take_fd(&fd);
}

/* One that is being recorded keeps its name, by which its recorder finds it. What cannot be opened,
 * as a file, has no lock. */
static int check_idle(const char *path, struct ptvm_error *error)
{
	struct ptvm_error why = { 0 };
	_cleanup_close_ int fd = lock(path, &why);

	if (fd >= 0 || why.sys_errno)
		return 0;
	return ptvm_fail(error, PTVM_SYSTEM, "%s: give another name with -o", why.message);
}

static int in_the_way(const char *path, struct ptvm_error *error)
{
	return ptvm_fail(error, PTVM_SYSTEM,
			 "%s is in the way, and holds what is no recording: move it, or give "
			 "another name with -o",
			 path);
}

/* As perf writes one, into a file. */
static bool is_perf_file(const char *path)
{
	static const char magic[8] = "PERFILE2";
	char start[sizeof(magic)];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return fd >= 0 && read(fd, start, sizeof(start)) == sizeof(start) &&
	       !memcmp(start, magic, sizeof(magic));
}

/* May what has this name be removed? Returns 0 with `ret` of it, also where nothing has it. */
static int check_old(const char *old, struct stat *ret, struct ptvm_error *error)
{
	ret->st_mode = 0;
	if (lstat(old, ret))
		return errno == ENOENT ? 0 : ptvm_fail_errno(error, "%s", old);
	if (S_ISDIR(ret->st_mode) ? is_recording(old) : S_ISLNK(ret->st_mode) || is_perf_file(old))
		return check_idle(old, error);
	return in_the_way(old, error);
}

/* The recording before the last. */
static int remove_old(const char *old, struct ptvm_error *error)
{
	struct stat about;
	int r = check_old(old, &about, error);

	if (r || !about.st_mode)
		return r;
	if (S_ISDIR(about.st_mode))
		return remove_recording(old, error);
	return unlink(old) ? ptvm_fail_errno(error, "%s: cannot remove it", old) : 0;
}

/* Does a directory hold what nobody would call a recording? */
static bool is_foreign(const char *path)
{
	char data[PATH_MAX];
	struct stat about;

	return !lstat(path, &about) && S_ISDIR(about.st_mode) &&
	       lstat(join(path, "data", data), &about) && !is_recording(path);
}

static const char *old_name(const char *path, char old[PATH_MAX + DIRECTORY_SUFFIX_BYTES])
{
	(void)snprintf(old, PATH_MAX + DIRECTORY_SUFFIX_BYTES, "%s.old", path);
	return old;
}

/* Give what has our name one that nobody uses: a file, or a recording, even one that holds more
 * than we know. */
static int put_aside(struct recording_directory *directory, struct ptvm_error *error)
{
	(void)snprintf(directory->aside, sizeof(directory->aside), "%s.XXXXXX", directory->path);
	if (mkdtemp(directory->aside) && !rmdir(directory->aside) &&
	    !rename(directory->path, directory->aside))
		return 0;
	directory->aside[0] = '\0';
	return ptvm_fail_errno(error, "%s: cannot rename it", directory->path);
}

static int make_room(struct recording_directory *directory, struct ptvm_error *error)
{
	char old[PATH_MAX + DIRECTORY_SUFFIX_BYTES];
	struct stat about;
	int r;

	if (lstat(directory->path, &about))
		return errno == ENOENT ? 0 : ptvm_fail_errno(error, "%s", directory->path);
	if (is_foreign(directory->path))
		return in_the_way(directory->path, error);
	r = check_idle(directory->path, error);
	if (!r)
		r = check_old(old_name(directory->path, old), &about, error);
	return r ? r : put_aside(directory, error);
}

static void bring_back(struct recording_directory *directory)
{
	if (directory->aside[0])
		(void)rename(directory->aside, directory->path);
	directory->aside[0] = '\0';
}

static int make_locked(struct recording_directory *directory, struct ptvm_error *error)
{
	int fd;

	if (mkdir(directory->path, 0700))
		return ptvm_fail_errno(error, "%s", directory->path);
	fd = lock(directory->path, error);
	if (fd < 0) {
		(void)rmdir(directory->path);
		return fd;
	}
	directory->lock = fd;
	return 0;
}

int recording_directory_make(const char *path, struct recording_directory *ret,
			     struct ptvm_error *error)
{
	int r = directory_path(path, ret->path, error);

	if (r < 0)
		return r;
	ret->aside[0] = '\0';
	r = make_room(ret, error);
	if (!r) {
		r = make_locked(ret, error);
		if (r)
			bring_back(ret);
	}
	if (r)
		ret->path[0] = '\0';
	return r;
}

int recording_directory_keep(struct recording_directory *directory, struct ptvm_error *error)
{
	char old[PATH_MAX + DIRECTORY_SUFFIX_BYTES];
	struct ptvm_error why = { 0 };
	int r;

	if (!directory->aside[0])
		return 0;
	r = remove_old(old_name(directory->path, old), &why);
	if (!r && rename(directory->aside, old))
		r = ptvm_fail_errno(&why, "%s", old);
	if (r)
		(void)ptvm_fail(error, PTVM_SYSTEM, "the recording before this one is %s now: %s",
				directory->aside, why.message);
	directory->aside[0] = '\0';
	return r;
}

const char *recording_directory_file(const struct recording_directory *directory, const char *name,
				     char path[PATH_MAX])
{
	return join(directory->path, name, path);
}

void recording_directory_close(struct recording_directory *directory)
{
	if (directory->lock)
		(void)close(directory->lock);
	directory->lock = 0;
}

void recording_directory_remove(struct recording_directory *directory)
{
	if (!directory->path[0])
		return;
	(void)remove_recording(directory->path, NULL);
	bring_back(directory);
	directory->path[0] = '\0';
	recording_directory_close(directory);
}
