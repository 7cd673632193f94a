/* Looks in segments of trace for visits: addresses that packets tell, in code of a kernel that may
 * have been replaced since it was copied. Whether packets then agree with the earlier code or with
 * what is known to have replaced it is a vote (visited_code.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/flow/pt_flow.h"
#include "decode/flow/trace_sources.h"
#include "decode/flow/visited_code.h"
#include "decode/pt/pt_segment.h"

enum code_version { CODE_EARLIER, CODE_LATER, CODE_VERSIONS };

/** The addresses of visited code that were told in a segment. */
struct told_list {
	struct told *items; /* by position */
	size_t count, room;
	size_t open; /* from here on it is not known yet whether packets agree */
};

struct code_visitor {
	const struct trace_sources *sources;
	bool is_about_modules; /* of which no later copy has what came to their place */
	bool needs_clock; /* segments stand alone: what comes before the first time is left out */
	struct visited_codes visited;
	uint64_t work;     /* done so far, see enum visitor_work */
	uint64_t first_ns; /* the first time that was told since it was set to 0; 0: none */
	bool is_out_of_memory;
	/* for the present segment */
	struct told_list told[CODE_VERSIONS];
	struct code codes[CODE_VERSIONS];
	struct pt_flow flow;
	struct flow_batch batch;
};

/** What it takes, by byte of trace, in units of about 3 ns. Time itself is not measured, so that
 * what depends on it is the same on any machine. */
enum visitor_work {
	WORK_WALK = 1,   /* to read packets, */
	WORK_SCAN = 3,   /* to look for visits, */
	WORK_FOLLOW = 8, /* or to follow code by them */
};

/** Begin without visits. All members are zero before. */
void code_visitor_init(struct code_visitor *visitor, const struct trace_sources *sources,
		       bool is_about_modules);

/** Look for visits in a segment of a source. When memory is out, some may be missing. */
void code_visitor_run(struct code_visitor *visitor, const struct trace_source *source,
		      const struct pt_segment *segment);

/** Free everything. Machines have each copy's code at its time again: until then they have that of
 * the copy that was looked at last. */
void code_visitor_free(struct code_visitor *visitor);
