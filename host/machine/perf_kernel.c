#include "host/machine/perf_kernel.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int kernel_open(void *context, struct perf_event_attr *attr, pid_t tid, int cpu,
		       int group_fd)
{
	return (int)syscall(SYS_perf_event_open, attr, tid, cpu, group_fd, PERF_FLAG_FD_CLOEXEC);
}

static int kernel_control(void *context, int fd, unsigned long request, unsigned long argument)
{
	return ioctl(fd, request, argument);
}

static void *kernel_map(void *context, size_t size, int protection, int fd, off_t offset)
{
	return mmap(NULL, size, protection, MAP_SHARED, fd, offset);
}

static int kernel_unmap(void *context, void *at, size_t size)
{
	return munmap(at, size);
}

static ssize_t kernel_read(void *context, int fd, void *data, size_t size)
{
	return read(fd, data, size);
}

static int kernel_close(void *context, int fd)
{
	return close(fd);
}

static int kernel_wait(void *context, struct pollfd *fds, size_t count, int ms)
{
	return poll(fds, count, ms);
}

struct perf_kernel perf_kernel_here(void)
{
	return (struct perf_kernel){
		.open = kernel_open,
		.control = kernel_control,
		.map = kernel_map,
		.unmap = kernel_unmap,
		.read = kernel_read,
		.close = kernel_close,
		.wait = kernel_wait,
		.page_size = (size_t)sysconf(_SC_PAGESIZE),
	};
}
