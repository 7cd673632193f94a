#include "correlate/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/cleanup.h"

static ssize_t write_at(const struct file_io *io, int fd, const void *bytes, size_t size,
			off_t offset)
{
	return pwrite(fd, bytes, size, offset);
}

static int sync_file(const struct file_io *io, int fd)
{
	return fsync(fd);
}

static int rename_file(const struct file_io *io, const char *from, const char *to)
{
	return rename(from, to);
}

static int remove_file(const struct file_io *io, const char *path)
{
	return unlink(path);
}

const struct file_io file_io_system = { write_at, sync_file, rename_file, remove_file };

int file_io_write(const struct file_io *io, int fd, const void *bytes, size_t size, off_t offset)
{
	const char *p = bytes;

	while (size) {
		ssize_t done = io->write_at(io, fd, p, size, offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -1;
		p += done;
		size -= (size_t)done;
		offset += done;
	}
	return 0;
}

int file_io_sync_directory(const struct file_io *io, const char *path)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int fd =
		copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd < 0 ? -1 : io->sync(io, fd);
}
