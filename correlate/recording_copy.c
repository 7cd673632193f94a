#include "correlate/recording_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/directory.h"
#include "decode/base/write_all.h"

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
	return got > 0 && write_all(to, buffer, (size_t)got) ? -1 : got;
}

static int copy_bytes(int from, int to, const struct watch *watch)
{
	ssize_t done;

	if (!ioctl(to, FICLONE, from))
		return 0;
	while ((done = copy_some(from, to)) > 0)
		if (!watch_go_on(watch))
			return -PTVM_END;
	return done < 0 ? -PTVM_SYSTEM : 0;
}

static int copy_file(int from, mode_t mode, const char *to, const struct watch *watch,
		     struct ptvm_error *error)
{
	_cleanup_close_ int fd =
		open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode & 0777) | S_IWUSR);
	int r = fd < 0 ? -PTVM_SYSTEM : copy_bytes(from, fd, watch);

	if (!r && fsync(fd))
		r = -PTVM_SYSTEM;
	return r == -PTVM_SYSTEM ? ptvm_fail_errno(error, "%s", to) : r;
}

/* Owned by the caller; NULL when memory is out. */
static char *name_of(const char *path, const char *slash, const char *name)
{
	char *ret;

	return asprintf(&ret, "%s%s%s", path, slash, name) < 0 ? NULL : ret;
}

static int copy_entries(int from, const char *to, int depth, const struct watch *watch,
			struct ptvm_error *error);

static int make_directory(const char *path, mode_t mode, struct ptvm_error *error)
{
	return mkdir(path, (mode & 0777) | S_IRWXU) ? ptvm_fail_errno(error, "%s", path) : 0;
}

static int copy_directory(int from, mode_t mode, const char *to, int depth,
			  const struct watch *watch, struct ptvm_error *error)
{
	int r;

	if (depth == DEPTH_MAX)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: directories too deep", to);
	r = make_directory(to, mode, error);
	return r ? r : copy_entries(from, to, depth, watch, error);
}

/* Only files and directories are parts of a recording; to open anything else, such as a device, may
 * have effects. A link to a directory may lead back up: it is followed only from the recording's
 * own directory. */
static int copy_entry(int directory, const char *name, const char *to, int depth,
		      const struct watch *watch, struct ptvm_error *error)
{
	_cleanup_free_ char *path = name_of(to, "/", name);
	_cleanup_close_ int fd = -1;
	struct stat link, status;

	if (!path)
		return -PTVM_NO_MEMORY;
	if (fstatat(directory, name, &link, AT_SYMLINK_NOFOLLOW) ||
	    fstatat(directory, name, &status, 0))
		return ptvm_fail_errno(error, "%s", name);
	if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
		return 0;
	if (S_ISLNK(link.st_mode) && S_ISDIR(status.st_mode) && depth)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: a link to a directory", name);
	fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return ptvm_fail_errno(error, "%s", name);
	return S_ISDIR(status.st_mode)
		       ? copy_directory(fd, status.st_mode, path, depth + 1, watch, error)
		       : copy_file(fd, status.st_mode, path, watch, error);
}

/* NULL at the end, and with errno set where it cannot be read. */
static struct dirent *next_entry(DIR *directory)
{
	struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(directory);
	} while (entry && directory_is_dots(entry->d_name));
	return entry;
}

static int copy_entries(int from, const char *to, int depth, const struct watch *watch,
			struct ptvm_error *error)
{
	int fd = dup(from);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!entries) {
		r = ptvm_fail_errno(error, "%s", to);
		if (fd >= 0)
			(void)close(fd);
		return r;
	}
	while (!r && (entry = next_entry(entries)))
		r = copy_entry(from, entry->d_name, to, depth, watch, error);
	if (!r && errno)
		r = ptvm_fail_errno(error, "%s", to);
	(void)closedir(entries);
	return r;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Would `path` be in that directory, at any depth? */
static bool lies_in(const char *path, const struct stat *directory)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int fd = copy ? open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct stat status, above;

	while (fd >= 0 && !fstat(fd, &status)) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		(void)close(fd);
		fd = up;
		if (is_same(&status, directory))
			return true;
		if (fd < 0 || fstat(fd, &above) || is_same(&status, &above))
			return false; /* the root is above itself */
	}
	return false;
}

/* `data` in the new directory, or what lies beside it by the same name and a suffix. */
static int copy_single(const char *from, const char *suffix, const char *to,
		       const struct watch *watch, struct ptvm_error *error)
{
	_cleanup_free_ char *source = name_of(from, suffix, "");
	_cleanup_free_ char *path = name_of(to, "/data", suffix);
	_cleanup_close_ int fd = -1;
	struct stat status;

	if (!source || !path)
		return -PTVM_NO_MEMORY;
	if (*suffix && access(source, F_OK))
		return 0;
	fd = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status))
		return ptvm_fail_errno(error, "%s", source);
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

static int copy_file_and_beside(const char *from, const char *to, const struct watch *watch,
				struct ptvm_error *error)
{
	static const char *const suffixes[] = { "", ".ptvm.json", ".ptvm-undo" };
	int r = 0;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]) && !r; i++)
		r = copy_single(from, suffixes[i], to, watch, error);
	return r;
}

int recording_copy(const char *from, const char *to, const struct watch *watch,
		   struct ptvm_error *error)
{
	_cleanup_close_ int fd = open(from, O_RDONLY | O_CLOEXEC);
	struct stat status;
	bool is_directory;
	int r;

	if (fd < 0 || fstat(fd, &status))
		return ptvm_fail_errno(error, "%s", from);
	is_directory = S_ISDIR(status.st_mode);
	if (is_directory && lies_in(to, &status))
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: lies in what is to be copied", to);
	r = make_directory(to, is_directory ? status.st_mode : 0777, error);
	if (r)
		return r; /* what is there may be another's */
	r = is_directory ? copy_entries(fd, to, 0, watch, error)
			 : copy_file_and_beside(from, to, watch, error);
	if (r)
		recording_remove(to);
	return r;
}
