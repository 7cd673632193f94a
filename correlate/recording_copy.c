#include "correlate/recording_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/base/cleanup.h"

enum { DEPTH_MAX = 8, STEP = 64 << 20 };

/* By the kernel where it can, otherwise through memory. */
static ssize_t copy_some(int from, int to)
{
	enum { BUFFER = 1 << 20 };
	_cleanup_free_ char *buffer = NULL;
	ssize_t got = copy_file_range(from, NULL, to, NULL, STEP, 0);

	if (got > 0 || (got < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS &&
			errno != EOPNOTSUPP))
		return got;
	buffer = malloc(BUFFER);
	if (!buffer)
		return -1;
	got = read(from, buffer, BUFFER);
	for (ssize_t at = 0, done; at < got; at += done) {
		done = write(to, buffer + at, (size_t)(got - at));
		if (done < 0)
			return -1;
	}
	return got;
}

static int copy_bytes(int from, int to, const struct copy_watch *watch)
{
	ssize_t done;

	if (!ioctl(to, FICLONE, from))
		return 0;
	while ((done = copy_some(from, to)) > 0)
		if (!watch->go_on(watch->context))
			return -PTVM_END;
	return done < 0 ? -PTVM_SYSTEM : 0;
}

static int copy_file(int from, mode_t mode, const char *to, const struct copy_watch *watch,
		     struct ptvm_error *error)
{
	_cleanup_close_ int fd =
		open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode & 0777) | S_IWUSR);
	int r = fd < 0 ? -PTVM_SYSTEM : copy_bytes(from, fd, watch);

	if (!r && fsync(fd))
		r = -PTVM_SYSTEM;
	return r == -PTVM_SYSTEM ? ptvm_fail_errno(error, "%s", to) : r;
}

static int copy_directory(int from, const char *to, int depth, const struct copy_watch *watch,
			  struct ptvm_error *error);

/* What is no file and no directory is no part of a recording. */
static int copy_entry(int directory, const char *name, const char *to, int depth,
		      const struct copy_watch *watch, struct ptvm_error *error)
{
	_cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ char *path = NULL;
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return ptvm_fail_errno(error, "%s", name);
	if (asprintf(&path, "%s/%s", to, name) < 0) {
		path = NULL;
		return ptvm_fail(error, PTVM_NO_MEMORY, "out of memory");
	}
	if (S_ISDIR(status.st_mode))
		return copy_directory(fd, path, depth + 1, watch, error);
	return S_ISREG(status.st_mode) ? copy_file(fd, status.st_mode, path, watch, error) : 0;
}

static int copy_directory(int from, const char *to, int depth, const struct copy_watch *watch,
			  struct ptvm_error *error)
{
	int fd = depth < DEPTH_MAX ? dup(from) : -1;
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (depth == DEPTH_MAX)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: directories too deep", to);
	if (!entries || mkdir(to, 0777)) {
		r = ptvm_fail_errno(error, "%s", to);
		if (!entries && fd >= 0)
			(void)close(fd);
	}
	while (!r && (entry = readdir(entries)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			r = copy_entry(from, entry->d_name, to, depth, watch, error);
	if (entries)
		(void)closedir(entries);
	return r;
}

int recording_copy(const char *from, const char *to, const struct copy_watch *watch,
		   struct ptvm_error *error)
{
	_cleanup_close_ int fd = open(from, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *path = NULL;
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return ptvm_fail_errno(error, "%s", from);
	if (S_ISDIR(status.st_mode))
		return copy_directory(fd, to, 0, watch, error);
	if (mkdir(to, 0777))
		return ptvm_fail_errno(error, "%s", to);
	if (asprintf(&path, "%s/data", to) < 0) {
		path = NULL;
		return ptvm_fail(error, PTVM_NO_MEMORY, "out of memory");
	}
	return copy_file(fd, status.st_mode, path, watch, error);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	return remove(path);
}

void recording_remove(const char *path)
{
	enum { OPEN_MAX_FILES = 16 };

	(void)nftw(path, remove_one, OPEN_MAX_FILES, FTW_DEPTH | FTW_PHYS);
}
