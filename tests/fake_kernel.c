#include "tests/fake_kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int fail(int sys_errno)
{
	errno = sys_errno;
	return -1;
}

static int fake_open(void *context, struct perf_event_attr *attr, pid_t tid, int cpu, int group_fd)
{
	struct fake_kernel *kernel = context;

	kernel->attr = *attr;
	kernel->tid = tid;
	kernel->cpu = cpu;
	kernel->group_fd = group_fd;
	if (kernel->interruptions && kernel->interruptions--)
		return fail(EINTR);
	if (kernel->open_errno == E2BIG)
		attr->size = 64;
	if (kernel->open_errno)
		return fail(kernel->open_errno);
	kernel->opened++;
	return FAKE_FD;
}

static int fake_control(void *context, int fd, unsigned long request, unsigned long argument)
{
	struct fake_kernel *kernel = context;

	if (kernel->control_errno)
		return fail(kernel->control_errno);
	if (request == PERF_EVENT_IOC_ENABLE) {
		kernel->is_stopped &= kernel->is_on && kernel->is_stubborn;
		kernel->is_on = true;
	} else if (request == PERF_EVENT_IOC_DISABLE) {
		kernel->is_on = false;
	} else if (request == PERF_EVENT_IOC_ID) {
		*(uint64_t *)argument = 4711;
	} else if (request != PERF_EVENT_IOC_SET_OUTPUT) {
		return fail(ENOTTY);
	}
	return 0;
}

static void *map_trace(struct fake_kernel *kernel, size_t size, int protection, off_t offset)
{
	const struct perf_event_mmap_page *page = fake_kernel_page(kernel);

	if (kernel->map_trace_errno || page->aux_offset != (uint64_t)offset ||
	    page->aux_size != size) {
		errno = kernel->map_trace_errno ? kernel->map_trace_errno : EINVAL;
		return MAP_FAILED;
	}
	kernel->trace = calloc(1, size);
	kernel->trace_size = size;
	kernel->trace_protection = protection;
	kernel->mapped++;
	return kernel->trace;
}

static void *fake_map(void *context, size_t size, int protection, int fd, off_t offset)
{
	struct fake_kernel *kernel = context;

	if (offset)
		return map_trace(kernel, size, protection, offset);
	if (kernel->map_records_errno) {
		errno = kernel->map_records_errno;
		return MAP_FAILED;
	}
	kernel->records_size = size - kernel->table.page_size;
	kernel->records = calloc(1, size);
	kernel->mapped++;
	return kernel->records;
}

static int fake_unmap(void *context, void *at, size_t size)
{
	struct fake_kernel *kernel = context;

	if (at == kernel->records && size == kernel->records_size + kernel->table.page_size)
		kernel->records = NULL;
	else if (at == kernel->trace && size == kernel->trace_size)
		kernel->trace = NULL;
	else
		return fail(EINVAL);
	kernel->mapped--;
	free(at);
	return 0;
}

static ssize_t fake_read(void *context, int fd, void *data, size_t size)
{
	const struct fake_kernel *kernel = context;
	const uint64_t counts[] = { 0, 4711, kernel->lost };

	if (!(kernel->attr.read_format & PERF_FORMAT_LOST))
		return 2 * sizeof(counts[0]);
	if (size < sizeof(counts))
		return fail(ENOSPC);
	memcpy(data, counts, sizeof(counts));
	return sizeof(counts);
}

static int fake_close(void *context, int fd)
{
	struct fake_kernel *kernel = context;

	kernel->closed++;
	return 0;
}

void fake_kernel_init(struct fake_kernel *kernel)
{
	memset(kernel, 0, sizeof(*kernel));
	kernel->table = (struct perf_kernel){
		.context = kernel,
		.open = fake_open,
		.control = fake_control,
		.map = fake_map,
		.unmap = fake_unmap,
		.read = fake_read,
		.close = fake_close,
		.page_size = FAKE_PAGE_SIZE,
	};
}

void fake_kernel_deinit(struct fake_kernel *kernel)
{
	free(kernel->records);
	free(kernel->trace);
}

struct perf_event_mmap_page *fake_kernel_page(const struct fake_kernel *kernel)
{
	return (struct perf_event_mmap_page *)(void *)kernel->records;
}

static void copy_around(uint8_t *ring, uint64_t ring_size, uint64_t at, const uint8_t *data,
			uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		ring[(at + i) % ring_size] = data[i];
}

uint64_t fake_kernel_trace(struct fake_kernel *kernel, const uint8_t *data, uint64_t size)
{
	struct perf_event_mmap_page *page = fake_kernel_page(kernel);
	uint64_t tail = __atomic_load_n(&page->aux_tail, __ATOMIC_ACQUIRE);
	uint64_t room = kernel->trace_size - (page->aux_head - tail);

	if (kernel->is_stopped)
		return 0;
	kernel->is_stopped = size > room;
	if (size > room)
		size = room;
	copy_around(kernel->trace, kernel->trace_size, page->aux_head, data, size);
	__atomic_store_n(&page->aux_head, page->aux_head + size, __ATOMIC_RELEASE);
	return size;
}

void fake_kernel_overwrite(struct fake_kernel *kernel, const uint8_t *data, uint64_t size)
{
	struct perf_event_mmap_page *page = fake_kernel_page(kernel);

	copy_around(kernel->trace, kernel->trace_size, page->aux_head, data, size);
	page->aux_head = (page->aux_head + size) % kernel->trace_size;
}

uint64_t fake_kernel_record(struct fake_kernel *kernel, const uint8_t *data, uint64_t size)
{
	struct perf_event_mmap_page *page = fake_kernel_page(kernel);
	uint64_t tail = __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);

	if (size > kernel->records_size - (page->data_head - tail))
		return 0;
	copy_around(kernel->records + kernel->table.page_size, kernel->records_size,
		    page->data_head, data, size);
	__atomic_store_n(&page->data_head, page->data_head + size, __ATOMIC_RELEASE);
	return size;
}
