/* Small files of /proc and /sys, which tell no size beforehand. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Read the file whose path `format` makes.
 *
 * @text  its first `size` - 1 bytes, less a newline at their end, and a NUL; empty on failure
 *
 * Returns the number of bytes, which may hold NULs; -PTVM_NOT_FOUND, or -PTVM_SYSTEM with errno
 * set.
 */
int kernel_file_read(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * Read the number that the file begins with: decimal, or hexadecimal after 0x.
 * Returns 0, as kernel_file_read(), or -PTVM_BAD_INPUT; `ret` is 0 then.
 */
int kernel_file_number(int64_t *ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** What a symbolic link says, as above; a name that does not fit is -PTVM_BAD_INPUT. */
int kernel_file_link(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Is there such a file, and may we read it? */
bool kernel_file_is_readable(const char *format, ...) __attribute__((format(printf, 1, 2)));
