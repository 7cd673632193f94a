/* TSC offsets that decoding must know before it begins: of guests that run where a queue starts. */
#pragma once

#include <stddef.h>

#include "decode/aux_queue.h"
#include "decode/base/bytes.h"
#include "decode/pt_config.h"
#include "decode/pt_offsets.h"

/**
 * Learn the offset of each VMCS in which a queue begins, reading no further than that takes.
 *
 * Where some queue shows host and guest TSC on one crystal count, the difference is exact. Where
 * none does (a snapshot of a guest that hardly ever left), the end of the trace, dated by the
 * kernel's AUX record, gives the offset to some microseconds; and as the crystal is common to all
 * CPUs, a host TSC of any queue makes that exact too. Each queue is read once, however many need
 * it.
 *
 * @mapping  of the trace, whose pages are given back; empty where it is in memory
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int pt_offsets_learn(const struct aux_queue *queues, size_t count, const struct pt_config *config,
		     const struct bytes *mapping, struct pt_offsets *ret);
