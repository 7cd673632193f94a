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

/* What a file begins with, on pages of its own. */
enum { HEAD = 64 << 10 };

struct spool_head {
	int fd; /* to grow the file by; -1: it never grows */
};

static struct spool_head *head_of(const void *bytes)
{
	return (struct spool_head *)((uintptr_t)bytes - HEAD);
}

/* Whether there is a place on the disk for the file up to `size` bytes behind its head. What is
 * taken beforehand cannot turn out to be missing when a page is written, which would end the
 * program. */
static bool take_place(int fd, size_t size)
{
	int r = posix_fallocate(fd, 0, (off_t)(HEAD + size));

	if (r == ENOSPC || r == EDQUOT || r == EFBIG)
		atomic_store(&full, true);
	return !r;
}

static void *map_file(int fd, size_t size)
{
	uint8_t *head;

	if (!take_place(fd, size))
		return NULL;
	head = mmap(NULL, HEAD + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (head == MAP_FAILED)
		return NULL;
	((struct spool_head *)head)->fd = -1;
	return head + HEAD;
}

void *spool_new(size_t size)
{
	_cleanup_close_ int fd = size > INT64_MAX - HEAD ? -1 : spool_open();

	return fd < 0 ? NULL : map_file(fd, size);
}

bool spool_was_full(void)
{
	return atomic_load(&full);
}

static void *move_to_file(void *bytes, size_t from, size_t to)
{
	_cleanup_close_ int fd = spool_open();
	void *moved = fd < 0 ? NULL : map_file(fd, to);

	if (!moved)
		return NULL;
	if (from)
		memcpy(moved, bytes, from);
	head_of(moved)->fd = take_fd(&fd);
	free(bytes);
	return moved;
}

/* Nothing is copied: the pages that are in memory stay the same. */
static void *grow_file(void *bytes, size_t from, size_t to)
{
	uint8_t *grown;

	if (!take_place(head_of(bytes)->fd, to))
		return NULL;
	grown = mremap(head_of(bytes), HEAD + from, HEAD + to, MREMAP_MAYMOVE);
	return grown == MAP_FAILED ? NULL : grown + HEAD;
}

void *spool_realloc(void *bytes, size_t from, size_t to)
{
	if (to > INT64_MAX - HEAD)
		return NULL;
	if (to < SPOOL_FROM)
		return realloc(bytes, to);
	return from < SPOOL_FROM ? move_to_file(bytes, from, to) : grow_file(bytes, from, to);
}

void spool_free(void *bytes, size_t size)
{
	if (size < SPOOL_FROM) {
		free(bytes);
		return;
	}
	if (head_of(bytes)->fd >= 0)
		(void)close(head_of(bytes)->fd);
	(void)munmap(head_of(bytes), HEAD + size);
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
