/* What is written to standard error meanwhile. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

struct said {
	int kept, file;
	char text[1000];
};

/** Take it, until said_end(). */
static inline void said_begin(struct said *said)
{
	(void)fflush(stderr);
	said->kept = dup(STDERR_FILENO);
	said->file = memfd_create("said", MFD_CLOEXEC);
	assert_true(said->kept >= 0 && said->file >= 0);
	assert_true(dup2(said->file, STDERR_FILENO) >= 0);
}

/** Returns its beginning, in `said`. */
static inline const char *said_end(struct said *said)
{
	ssize_t size;

	(void)fflush(stderr);
	assert_true(dup2(said->kept, STDERR_FILENO) >= 0);
	size = pread(said->file, said->text, sizeof(said->text) - 1, 0);
	assert_true(size >= 0);
	said->text[size] = '\0';
	assert_int_equal(close(said->kept), 0);
	assert_int_equal(close(said->file), 0);
	return said->text;
}
