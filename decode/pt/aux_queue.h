/* The trace bytes of one AUX queue: spans of the recording that form one stream, never copied. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Some contiguous bytes of the stream. */
struct aux_span {
	const uint8_t *data; /* in the mapped recording */
	uint64_t size;       /* bytes, > 0 */
	uint64_t position; /* of the first byte in the queue's stream; spans follow on each other */
	uint64_t file_offset;
	uint64_t trace_offset; /* of the first byte in all that the kernel traced; 0 unknown */
	uint64_t reference;    /* TSC read by the recorder after this was traced; 0 unknown */
	uint64_t stop_ns;      /* perf's clock when the last of it had been traced; 0 unknown */
	/* Data was lost (AUX truncated) or the buffer stands alone (snapshot, sample) just before
	 * this span: no packet straddles into it, and time and flow have a gap here. */
	bool lost_before;
};

/** Bytes of the recording that repeat some of the stream, and are not part of it. */
struct aux_repeat {
	uint64_t position, size; /* what is repeated */
	uint64_t file_offset;    /* where */
};

/** A place where the kernel says that trace was lost. */
struct aux_loss {
	uint64_t time; /* ns of perf's clock */
	int32_t cpu, tid;
	uint64_t position; /* in the queue's stream; its size when past all spans */
	uint64_t flags;    /* of the AUX record: 1 truncated, 4 partial, 8 collision */
};

/** One queue: the trace of one CPU, or of one thread. */
struct aux_queue {
	uint32_t index;   /* as in the AUXTRACE records */
	int32_t cpu;      /* -1: per-thread queue */
	int32_t tid, pid; /* -1: per-CPU queue, the thread comes from switch records */
	struct aux_span *spans;
	size_t count, room;
	uint64_t size;           /* bytes in all spans */
	struct aux_loss *losses; /* by position */
	size_t loss_count, loss_room;
	struct aux_repeat *repeats; /* in order of arrival */
	size_t repeat_count;
};
