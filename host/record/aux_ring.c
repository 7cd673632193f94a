#include "host/record/aux_ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { CLOCK_TRIES = 10000, MAX_SHIFT = 63 };

static bool is_power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

static int fail_map(uint64_t size, struct ptvm_error *error)
{
	int sys_errno = errno;
	unsigned long long kib = size / 1024;

	if (sys_errno == EPERM)
		(void)ptvm_fail(
			error, PTVM_SYSTEM,
			"no right to lock %llu KiB for a buffer: run as root, raise ulimit -l "
			"or kernel.perf_event_mlock_kb, or use smaller buffers (-m)",
			kib);
	else if (sys_errno == ENOMEM)
		(void)ptvm_fail(error, PTVM_SYSTEM,
				"no memory for a buffer of %llu KiB: use smaller buffers (-m)",
				kib);
	else
		(void)ptvm_fail(error, PTVM_SYSTEM, "a buffer of %llu KiB: %s", kib,
				strerror(sys_errno));
	if (error)
		error->sys_errno = sys_errno;
	return -PTVM_SYSTEM;
}

static int map_records(struct aux_ring *ring, int fd, uint64_t pages, struct ptvm_error *error)
{
	const struct perf_kernel *kernel = ring->kernel;
	uint64_t size = (pages + 1) * kernel->page_size;
	void *at = kernel->map(kernel->context, size, PROT_READ | PROT_WRITE, fd, 0);

	if (at == MAP_FAILED)
		return fail_map(size, error);
	ring->page = at;
	ring->records = (const uint8_t *)at + kernel->page_size;
	ring->records_size = pages * kernel->page_size;
	return 0;
}

/* A read-only mapping tells the kernel to write over the oldest trace, round and round. */
static int map_trace(struct aux_ring *ring, int fd, uint64_t pages, struct ptvm_error *error)
{
	const struct perf_kernel *kernel = ring->kernel;
	uint64_t offset = ring->records_size + kernel->page_size;
	uint64_t size = pages * kernel->page_size;
	void *at;

	ring->page->aux_offset = offset;
	ring->page->aux_size = size;
	at = kernel->map(kernel->context, size,
			 ring->is_snapshot ? PROT_READ : PROT_READ | PROT_WRITE, fd, (off_t)offset);
	if (at == MAP_FAILED)
		return fail_map(size, error);
	ring->aux = at;
	ring->aux_size = size;
	return 0;
}

int aux_ring_map(struct aux_ring *ring, const struct perf_kernel *kernel, int fd,
		 uint64_t record_pages, uint64_t aux_pages, bool is_snapshot,
		 struct ptvm_error *error)
{
	uint64_t most = (uint64_t)INT64_MAX / 4 / kernel->page_size;
	int r;

	memset(ring, 0, sizeof(*ring));
	ring->kernel = kernel;
	ring->is_snapshot = is_snapshot;
	if (!is_power_of_two(record_pages) || (aux_pages && !is_power_of_two(aux_pages)) ||
	    record_pages > most || aux_pages > most)
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "the size of a buffer must be a power of two, in pages");
	r = map_records(ring, fd, record_pages, error);
	if (!r && aux_pages)
		r = map_trace(ring, fd, aux_pages, error);
	if (r)
		aux_ring_unmap(ring);
	return r;
}

void aux_ring_unmap(struct aux_ring *ring)
{
	const struct perf_kernel *kernel = ring->kernel;

	if (ring->aux)
		(void)kernel->unmap(kernel->context, (void *)(uintptr_t)ring->aux, ring->aux_size);
	if (ring->page)
		(void)kernel->unmap(kernel->context, ring->page,
				    ring->records_size + kernel->page_size);
	memset(ring, 0, sizeof(*ring));
}

/* The bytes from `tail` to `head`, both counted since the beginning, of a ring at `base`. */
static int pieces(const uint8_t *base, uint64_t size, uint64_t tail, uint64_t head,
		  struct ring_bytes *ret)
{
	uint64_t start = tail & (size - 1);
	uint64_t count = head - tail;
	uint64_t first = count < size - start ? count : size - start;

	memset(ret, 0, sizeof(*ret));
	ret->end = head;
	if (count > size)
		return -PTVM_INCONSISTENT;
	ret->first = base + start;
	ret->first_size = first;
	ret->second = base;
	ret->second_size = count - first;
	return 0;
}

int aux_ring_records(const struct aux_ring *ring, struct ring_bytes *ret)
{
	/* Acquire: what the kernel wrote before it moved the head is seen once the head is. */
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);

	return pieces(ring->records, ring->records_size, ring->page->data_tail, head, ret);
}

void aux_ring_release_records(struct aux_ring *ring, const struct ring_bytes *bytes)
{
	/* Release: we have read before the kernel sees that it may write. */
	__atomic_store_n(&ring->page->data_tail, bytes->end, __ATOMIC_RELEASE);
}

int aux_ring_trace(const struct aux_ring *ring, struct ring_bytes *ret)
{
	/* Acquire: as for records; the kernel fences what the CPU traced before it moves the head.
	 */
	uint64_t head = __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);

	assert(ring->aux && !ring->is_snapshot);
	return pieces(ring->aux, ring->aux_size, ring->page->aux_tail, head, ret);
}

void aux_ring_release_trace(struct aux_ring *ring, const struct ring_bytes *bytes)
{
	/* Release: as for records. */
	__atomic_store_n(&ring->page->aux_tail, bytes->end, __ATOMIC_RELEASE);
}

/* The kernel hands out zeroes, and a trace is not all zeroes: what lies ahead of the head was
 * written on an earlier round. Bytes are all zero where the first is, and each equals the next. */
static bool has_trace_ahead(const struct aux_ring *ring, uint64_t head)
{
	const uint8_t *ahead = ring->aux + head;
	uint64_t size = ring->aux_size - head;

	return size && (ahead[0] || memcmp(ahead, ahead + 1, size - 1));
}

int aux_ring_snapshot(struct aux_ring *ring, uint64_t size, struct ring_bytes *ret)
{
	/* Acquire: as for records. */
	uint64_t head = __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);
	uint64_t written;

	assert(ring->aux && ring->is_snapshot);
	if (head > ring->aux_size) {
		memset(ret, 0, sizeof(*ret));
		return -PTVM_INCONSISTENT;
	}
	ring->is_around = ring->is_around || has_trace_ahead(ring, head);
	written = ring->is_around ? ring->aux_size : head;
	if (size > written)
		size = written;
	/* One round further, so that the place of the first byte is not negative. */
	head += ring->aux_size;
	return pieces(ring->aux, ring->aux_size, head - size, head, ret);
}

static void read_clock(const struct perf_event_mmap_page *page, struct ring_clock *ret)
{
	ret->conv.shift = page->time_shift;
	ret->conv.mult = page->time_mult;
	ret->conv.zero = page->time_zero;
	ret->conv.valid =
		page->cap_user_time_zero && page->time_mult && page->time_shift <= MAX_SHIFT;
	ret->cycles = page->time_cycles;
	ret->mask = page->time_mask;
	ret->is_short = page->cap_user_time_short;
}

int aux_ring_clock(const struct aux_ring *ring, struct ring_clock *ret)
{
	const struct perf_event_mmap_page *page = ring->page;
	uint32_t before;

	for (int i = 0; i < CLOCK_TRIES; i++) {
		/* Acquire: what we read next is not older than the count. */
		before = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		read_clock(page, ret);
		/* Fence: what we read is not newer than the count that we compare. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && __atomic_load_n(&page->lock, __ATOMIC_RELAXED) == before)
			return 0;
	}
	return -PTVM_INCONSISTENT;
}
