#include "tests/failing_io.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static bool count_down(const struct file_io *io)
{
	struct failing_io *failing = (struct failing_io *)(uintptr_t)io;

	if (failing->left < 0 || failing->left--)
		return false;
	if (failing->dies)
		_exit(0);
	errno = ENOSPC;
	return true;
}

static ssize_t write_at(const struct file_io *io, int fd, const void *bytes, size_t size,
			off_t offset)
{
	return count_down(io) ? -1 : pwrite(fd, bytes, size, offset);
}

static int sync_file(const struct file_io *io, int fd)
{
	return count_down(io) ? -1 : 0;
}

static int rename_file(const struct file_io *io, const char *from, const char *to)
{
	return count_down(io) ? -1 : rename(from, to);
}

static int remove_file(const struct file_io *io, const char *path)
{
	return count_down(io) ? -1 : unlink(path);
}

struct failing_io failing_io_after(long calls, bool dies)
{
	return (struct failing_io){ { write_at, sync_file, rename_file, remove_file },
				    calls,
				    dies };
}
