/* A queue's trace as one stream of bytes, handed out as windows of plain memory. Packets may lie
 * across two spans, but spans are not copied, except for a few bytes around their ends. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/pt/aux_queue.h"

enum { PT_WINDOW_SLACK = 16 };

/**
 * Memory to read packets from: every packet that begins in [data, limit) can be read whole from
 * [data, end), except one that the trace cuts short. PT_WINDOW_SLACK bytes past limit are readable
 * memory in any case.
 */
struct pt_window {
	const uint8_t *data, *limit, *end;
	uint64_t position; /* of data in the stream */
	bool last;         /* it is empty: the queue ends */
	bool lost_after;   /* behind end data was lost: what follows is another stretch */
	uint8_t stitch[4 * PT_WINDOW_SLACK];
};

/**
 * The window at `position`, which may be the end of the queue (an empty window, `last` set).
 * The window refers to itself: do not copy it.
 */
void pt_window_at(const struct aux_queue *queue, uint64_t position, struct pt_window *ret);

/** The span that holds `position`; the last one for the end of the queue; NULL in an empty queue.
 */
const struct aux_span *pt_span_at(const struct aux_queue *queue, uint64_t position);

/** Where in the recording's file a position of the stream lies. */
uint64_t pt_file_offset(const struct aux_queue *queue, uint64_t position);

/** The next PSB at or after `position` (also one that straddles spans); queue->size if none. */
uint64_t pt_psb_after(const struct aux_queue *queue, uint64_t position);

/**
 * The PSB from which packets can be read again after a bad one at `position`; or, with `ret_lost`,
 * where data was lost before that. The PSB may begin a little before `position`, if its first bytes
 * were read as part of another packet. queue->size if there is none.
 */
uint64_t pt_psb_resync(const struct aux_queue *queue, uint64_t position, bool *ret_lost);
