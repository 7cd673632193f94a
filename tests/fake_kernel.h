/* A kernel with one perf event, in plain memory: it traces what a test tells it to, keeps the rules
 * of the ring, and fails on demand. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/machine/perf_kernel.h"

enum { FAKE_FD = 77, FAKE_PAGE_SIZE = 4096 };

struct fake_kernel {
	struct perf_kernel table; /* give this to what is tested */

	/* What it shall fail with: errno, 0 not at all. */
	int open_errno, control_errno, map_records_errno, map_trace_errno;
	int interruptions; /* how often open() is interrupted first */
	bool is_stubborn;  /* what stopped counts as on, until it is switched off */

	/* What it was asked for. */
	struct perf_event_attr attr;
	pid_t tid;
	int cpu, group_fd;
	unsigned opened, closed, mapped;
	bool is_on; /* by ioctl */
	int trace_protection;

	uint8_t *records; /* the control page and the ring behind it */
	uint8_t *trace;
	uint64_t records_size, trace_size; /* of the rings */
	bool is_stopped;                   /* the trace ring was full */
	uint64_t lost;                     /* records that it counts as dropped */
};

/** Make a kernel without events; fake_kernel_deinit() when done. Not to be moved then. */
void fake_kernel_init(struct fake_kernel *kernel);

/** Release the rings. */
void fake_kernel_deinit(struct fake_kernel *kernel);

/** The control page, as the kernel sees it. */
struct perf_event_mmap_page *fake_kernel_page(const struct fake_kernel *kernel);

/** Trace into a ring; returns how many bytes there was room for: the trace stops at the rest. */
uint64_t fake_kernel_trace(struct fake_kernel *kernel, const uint8_t *data, uint64_t size);

/** Trace into a snapshot ring, around and around. */
void fake_kernel_overwrite(struct fake_kernel *kernel, const uint8_t *data, uint64_t size);

/** Write records; returns how many bytes of them: all or none. */
uint64_t fake_kernel_record(struct fake_kernel *kernel, const uint8_t *data, uint64_t size);
