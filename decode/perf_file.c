#include "decode/perf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/base/cleanup.h"

static int map(int fd, struct perf_data *ret, struct ptvm_error *error)
{
	struct stat status;
	void *bytes;

	if (fstat(fd, &status) < 0)
		return ptvm_fail_errno(error, "%s", ret->file_path);
	if (!status.st_size)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: empty file", ret->file_path);
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return ptvm_fail_errno(error, "%s: cannot map", ret->file_path);
	ret->file = (struct bytes){ bytes, (size_t)status.st_size };
	ret->is_mapped = true;
	return 0;
}

static int open_spool(struct ptvm_error *error)
{
	const char *directory = getenv("TMPDIR");
	int fd = open(directory ? directory : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = memfd_create("ptvm-pipe", MFD_CLOEXEC);
	return fd < 0 ? ptvm_fail_errno(error, "no temporary file for a pipe") : fd;
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t done = write(fd, bytes, size);

		if (done < 0 && errno != EINTR)
			return -1;
		if (done > 0) {
			bytes += done;
			size -= (size_t)done;
		}
	}
	return 0;
}

/* Read all of `from`; returns a descriptor of a file with its bytes. */
static int spool(int from, struct ptvm_error *error)
{
	enum { STEP = 1 << 20 };
	_cleanup_close_ int to = open_spool(error);
	_cleanup_free_ uint8_t *buffer = malloc(STEP);
	ssize_t got;
	int fd = to;

	if (to < 0)
		return to;
	if (!buffer)
		return -PTVM_NO_MEMORY;
	do {
		got = read(from, buffer, STEP);
		if (got < 0 && errno != EINTR)
			return ptvm_fail_errno(error, "cannot read from the pipe");
		if (got > 0 && write_all(to, buffer, (size_t)got) < 0)
			return ptvm_fail_errno(error, "cannot keep what comes from the pipe");
	} while (got);
	to = -1;
	return fd;
}

static int open_stream(int from, struct perf_data *ret, struct ptvm_error *error)
{
	_cleanup_close_ int fd = spool(from, error);

	return fd < 0 ? fd : map(fd, ret, error);
}

static int open_standard_input(struct perf_data *ret, struct ptvm_error *error)
{
	struct stat status;

	ret->file_path = strdup("-");
	if (!ret->file_path)
		return -PTVM_NO_MEMORY;
	if (!fstat(STDIN_FILENO, &status) && S_ISREG(status.st_mode) &&
	    !lseek(STDIN_FILENO, 0, SEEK_CUR))
		return map(STDIN_FILENO, ret, error);
	return open_stream(STDIN_FILENO, ret, error);
}

/* The data file's path; a directory's is `data` in it, its own path is kept without last slash. */
static int set_paths(struct perf_data *ret)
{
	struct stat status;
	size_t length = strlen(ret->path);

	if (stat(ret->path, &status) < 0 || !S_ISDIR(status.st_mode)) {
		ret->file_path = strdup(ret->path);
		return ret->file_path ? 0 : -PTVM_NO_MEMORY;
	}
	while (length > 1 && ret->path[length - 1] == '/')
		length--;
	ret->directory = strndup(ret->path, length);
	if (!ret->directory || asprintf(&ret->file_path, "%s/data", ret->directory) < 0) {
		ret->file_path = NULL;
		return -PTVM_NO_MEMORY;
	}
	return 0;
}

int perf_file_open(const char *path, struct perf_data *ret, struct ptvm_error *error)
{
	_cleanup_close_ int fd = -1;
	struct stat status;

	ret->path = strdup(path);
	if (!ret->path)
		return -PTVM_NO_MEMORY;
	if (!strcmp(path, "-"))
		return open_standard_input(ret, error);
	if (set_paths(ret) < 0)
		return -PTVM_NO_MEMORY;
	fd = open(ret->file_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ptvm_fail_errno(error, "%s", ret->file_path);
	if (!fstat(fd, &status) && !S_ISREG(status.st_mode))
		return open_stream(fd, ret, error);
	return map(fd, ret, error);
}

void perf_file_close(struct perf_data *data)
{
	if (data->is_mapped)
		(void)munmap((void *)data->file.data, data->file.size);
	free(data->path);
	free(data->directory);
	free(data->file_path);
}
