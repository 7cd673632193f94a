/* write(2) may stop half way; this does not. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/** Write `size` bytes, however many calls that takes. Returns 0, or -1 with errno set; then some of
 * them may be written. */
static inline int write_all(int fd, const void *data, size_t size)
{
	const char *from = data;

	while (size) {
		ssize_t done = write(fd, from, size);

		if (done < 0 && errno != EINTR)
			return -1;
		if (done > 0) {
			from += done;
			size -= (size_t)done;
		}
	}
	return 0;
}
