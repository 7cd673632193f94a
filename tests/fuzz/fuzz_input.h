/* Files and other pieces made of the bytes of a fuzz target. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/base/bytes.h"

enum { FUZZ_PATH = 32 };

/* The next piece: three bytes, the lowest first, give its size; it is shorter where the input ends.
 */
static inline struct bytes fuzz_piece(struct bytes *from)
{
	enum { SIZE = 3 };
	struct bytes piece = { NULL, 0 };
	uint64_t size;

	if (bytes_read(*from, 0, SIZE, &size))
		piece = bytes_slice(*from, SIZE, size);
	*from = bytes_slice(*from, SIZE + piece.size, from->size);
	return piece;
}

/** A file in memory with these bytes, by its path too, as long as the descriptor is open. */
static inline int fuzz_file(struct bytes bytes, char path[FUZZ_PATH])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || (bytes.size && write(fd, bytes.data, bytes.size) != (ssize_t)bytes.size))
		abort();
	(void)snprintf(path, FUZZ_PATH, "/proc/self/fd/%d", fd);
	return fd;
}
