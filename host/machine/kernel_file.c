#include "host/machine/kernel_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/error.h"

__attribute__((format(printf, 2, 0))) static int make_path(char *path, const char *format,
							   va_list args)
{
	int length = vsnprintf(path, PATH_MAX, format, args);

	return length >= 0 && length < PATH_MAX ? 0 : -PTVM_NOT_FOUND;
}

static int failed(void)
{
	return errno == ENOENT || errno == ENOTDIR || errno == ESRCH ? -PTVM_NOT_FOUND
								     : -PTVM_SYSTEM;
}

static int read_whole(const char *path, char *text, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t used = 0;
	ssize_t n;

	if (fd < 0)
		return failed();
	do {
		n = read(fd, text + used, size - 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed();
		used += (size_t)n;
	} while (n && used < size - 1);
	if (used && text[used - 1] == '\n')
		used--;
	text[used] = 0;
	return (int)used;
}

int kernel_file_read(char *text, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int r;

	va_start(args, format);
	r = make_path(path, format, args);
	va_end(args);
	if (!r)
		r = read_whole(path, text, size);
	if (r < 0)
		text[0] = 0;
	return r;
}

int kernel_file_number(int64_t *ret, const char *format, ...)
{
	char path[PATH_MAX], text[64], *end;
	va_list args;
	int r;

	*ret = 0;
	va_start(args, format);
	r = make_path(path, format, args);
	va_end(args);
	if (!r)
		r = read_whole(path, text, sizeof(text));
	if (r < 0)
		return r;
	errno = 0;
	*ret = strtoll(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
	if (end == text || errno) {
		*ret = 0;
		return -PTVM_BAD_INPUT;
	}
	return 0;
}

int kernel_file_link(char *text, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	ssize_t n;
	int r;

	text[0] = 0;
	va_start(args, format);
	r = make_path(path, format, args);
	va_end(args);
	if (r)
		return r;
	n = readlink(path, text, size);
	if (n < 0)
		r = failed();
	else if ((size_t)n >= size)
		r = -PTVM_BAD_INPUT;
	text[r ? 0 : n] = 0;
	return r ? r : (int)n;
}

bool kernel_file_is_readable(const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int r;

	va_start(args, format);
	r = make_path(path, format, args);
	va_end(args);
	return !r && !access(path, R_OK);
}
