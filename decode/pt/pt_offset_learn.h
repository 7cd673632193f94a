/* TSC offsets that must be known before decoding begins: those of guests that run where a queue
 * begins, or goes on after a loss. */
#pragma once

#include <stddef.h>

#include "decode/base/bytes.h"
#include "decode/pt/aux_queue.h"
#include "decode/pt/pt_config.h"
#include "decode/pt/pt_offsets.h"

/**
 * Learn the offset of each VMCS in which a queue begins, or one of its snapshots and samples, or
 * what follows a loss, reading no further than that takes.
 *
 * Where a queue has TSC packets of host and guest with crystal counts (TMA), the difference is
 * exact. Where none has, as in a snapshot of a guest that hardly ever exits, the kernel's AUX
 * record tells when the trace ended, which gives the offset to some microseconds. Since all CPUs
 * have the same crystal, a TSC of the host in any queue makes that exact, too. Each queue is read
 * once, however many need it.
 *
 * @mapping  of the trace, whose pages are given back; empty where it is in memory
 *
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int pt_offsets_learn(const struct aux_queue *queues, size_t count, const struct pt_config *config,
		     const struct bytes *mapping, struct pt_offsets *ret);
