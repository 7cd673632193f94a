#include "decode/base/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/base/cleanup.h"

static atomic_bool full;

static int open_in(const char *directory)
{
	return open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

int spool_open(void)
{
	const char *directory = getenv("TMPDIR");
	int fd = open_in(directory ? directory : "/var/tmp");

	if (fd < 0)
		fd = open_in("/tmp");
	return fd < 0 ? memfd_create("ptvm", MFD_CLOEXEC) : fd;
}

static void *map(int fd, size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

/* A place that is taken on the disk beforehand cannot turn out to be missing when a page is
 * written, which would end the program. */
static void *map_file(size_t size)
{
	_cleanup_close_ int fd = spool_open();
	int r = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)size);

	if (r == ENOSPC || r == EDQUOT || r == EFBIG)
		atomic_store(&full, true);
	return r ? NULL : map(fd, size);
}

bool spool_was_full(void)
{
	return atomic_load(&full);
}

/* Neither the old nor the new bytes are in memory as a whole. */
static void move(uint8_t *to, uint8_t *from, size_t size, bool from_file)
{
	enum { STEP = 4 << 20 };

	for (size_t at = 0; at < size; at += STEP) {
		size_t step = size - at < STEP ? size - at : STEP;

		memcpy(to + at, from + at, step);
		(void)madvise(to + at, step, MADV_DONTNEED);
		if (from_file)
			(void)madvise(from + at, step, MADV_DONTNEED);
	}
}

void *spool_realloc(void *bytes, size_t from, size_t to)
{
	uint8_t *moved;

	if (to > INT64_MAX)
		return NULL;
	if (to < SPOOL_FROM)
		return realloc(bytes, to);
	moved = map_file(to);
	if (!moved)
		return NULL;
	move(moved, bytes, from, from >= SPOOL_FROM);
	spool_free(bytes, from);
	return moved;
}

void spool_free(void *bytes, size_t size)
{
	if (size < SPOOL_FROM)
		free(bytes);
	else
		(void)munmap(bytes, size);
}

void spool_rest(const void *bytes, size_t size)
{
	if (size >= SPOOL_FROM)
		(void)madvise((void *)bytes, size, MADV_DONTNEED);
}

bool spool_grow(void **items, size_t *room, size_t count, size_t size)
{
	enum { FIRST = 16 };
	size_t want = *room ? *room * 2 : FIRST;
	void *grown;

	if (count < *room)
		return true;
	if (want > SIZE_MAX / size)
		return false;
	grown = spool_realloc(*items, *room * size, want * size);
	if (!grown)
		return false;
	*items = grown;
	*room = want;
	return true;
}
