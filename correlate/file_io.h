/* The calls that change files, so that tests can make any of them fail or be the last. */
#pragma once

#include <sys/types.h>

struct file_io {
	ssize_t (*write_at)(const struct file_io *io, int fd, const void *bytes, size_t size,
			    off_t offset);
	int (*sync)(const struct file_io *io, int fd);
	int (*rename)(const struct file_io *io, const char *from, const char *to);
	int (*remove)(const struct file_io *io, const char *path);
};

/** The system's own calls. */
extern const struct file_io file_io_system;

/** Write all bytes. Returns 0, or -1 with errno. */
int file_io_write(const struct file_io *io, int fd, const void *bytes, size_t size, off_t offset);

/** Make what happened to names in the directory of `path` last. Returns 0, or -1 with errno. */
int file_io_sync_directory(const struct file_io *io, const char *path);
