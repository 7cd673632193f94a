/* The system calls of perf events as a table. All that the recorder asks of the kernel goes through
 * it, so that tests can put a fake kernel there. */
#pragma once

#include <linux/perf_event.h>
#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

/** Each fails as the system call does: -1, or MAP_FAILED, with errno set. */
struct perf_kernel {
	void *context; /* of the functions */
	/* `group_fd`: the event that leads, and is on the CPU whenever this one is; -1: none. */
	int (*open)(void *context, struct perf_event_attr *attr, pid_t tid, int cpu, int group_fd);
	int (*control)(void *context, int fd, unsigned long request, unsigned long argument);
	void *(*map)(void *context, size_t size, int protection, int fd, off_t offset);
	int (*unmap)(void *context, void *at, size_t size);
	ssize_t (*read)(void *context, int fd, void *data, size_t size);
	int (*close)(void *context, int fd);
	/* As poll(2): wait until one of `count` events has something to read, or `ms` went by. */
	int (*wait)(void *context, struct pollfd *fds, size_t count, int ms);
	size_t page_size;
};

/** The kernel that we run on. */
struct perf_kernel perf_kernel_here(void);
