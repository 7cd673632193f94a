/* Infers from a sample of all queues which instructions of kernels were patched since they were
 * copied, and from when to when. A single disagreement of packets and code has often several
 * explanations; over many, only the right one explains all and is never contradicted. This is done
 * when first needed, and every segment gets the same result. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "decode/flow/flow_mark.h"
#include "decode/flow/return_sites.h"
#include "decode/flow/trace_sources.h"

struct patch_inference {
	struct trace_sources sources;
	pthread_mutex_t lock;
	bool is_begun, is_needed; /* it was seen whether there is something to learn; there is */
	bool is_done;
	bool is_wrong; /* so much disagrees that the copy is not of the code that ran */
	struct flow_patches patches;
	struct return_sites returns;
};

/** Begin without queues; they are to be added to `sources`. `config` and `machines` are borrowed.
 */
void patch_inference_init(struct patch_inference *inference, const struct pt_config *config,
			  const struct machines *machines, const struct pt_offsets *offsets);

/** Free everything; accepts zeroes. */
void patch_inference_free(struct patch_inference *inference);

/** The patches; any thread may ask, the first one infers them and the others wait. */
const struct flow_patches *patch_inference_get(struct patch_inference *inference);

/** Where functions return to; the same as patch_inference_get() otherwise. */
const struct return_sites *patch_inference_returns(struct patch_inference *inference);

/**
 * The flow meets the code of a kernel (flow_meets_kernel()): have the inferred patches in force
 * from there on, if packets and code disagree anywhere in a sample of the trace. The flow may pass
 * a patched site and yet never disagree, and what it then told would not be what ran. The mark
 * comes to where the flow is.
 */
void patch_inference_begin(struct flow_run *run, struct flow_mark *mark);

/**
 * Packets and code disagree: go back to the mark with the inferred patches in force. Returns false,
 * and does nothing, where there are none or the flow has them already.
 */
bool patch_inference_apply(struct flow_run *run, const struct flow_mark *mark);
