#include "decode/base/text_file.h"

#include <stdint.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/regular_file.h"

enum { FIRST_SIZE = 1 << 20, MAX_SIZE = 256 << 20 };

/* Read until the end or until `room` is full. */
static ssize_t read_full(int fd, char *to, size_t room)
{
	size_t done = 0;

	while (done < room) {
		ssize_t n = read(fd, to + done, room - done);

		if (n < 0)
			return n;
		if (!n)
			break;
		done += n;
	}
	return done;
}

int text_file_read(const char *path, struct arena *arena, char **ret_text, size_t *ret_size,
		   struct ptvm_error *error)
{
	struct stat status;
	_cleanup_close_ int fd = regular_file_open(path, &status, error);

	if (fd < 0)
		return fd;
	/* one byte more than a file has, to see that it ends there */
	for (size_t room = status.st_size ? (size_t)status.st_size + 1 : FIRST_SIZE + 1;
	     room <= MAX_SIZE + 1; room = 2 * room - 1) {
		char *text = arena_alloc(arena, room + 1);
		ssize_t n;

		if (!text)
			return -PTVM_NO_MEMORY;
		n = lseek(fd, 0, SEEK_SET) ? -1 : read_full(fd, text, room);
		if (n < 0)
			return ptvm_fail_errno(error, "%s", path);
		if ((size_t)n == room)
			continue;
		if (n && text[n - 1] != '\n')
			text[n++] = '\n';
		*ret_text = text;
		*ret_size = n;
		return 0;
	}
	return ptvm_fail(error, PTVM_BAD_INPUT, "%s: larger than %d MiB", path, MAX_SIZE >> 20);
}
