#include "tests/flow_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "decode/base/cleanup.h"
#include "decode/base/vec.h"
#include "decode/code/machine_parts.h"
#include "decode/flow/code_visits.h"
#include "decode/flow/patch_inference.h"
#include "decode/flow/patch_search.h"
#include "decode/flow/replaced_module.h"

const struct pt_config bench_skylake_x = { .tsc = true,
					   .mtc = true,
					   .mtc_shift = 3,
					   .ctc_n = 80,
					   .ctc_d = 1,
					   .cpu_family = 6,
					   .cpu_model = 0x55 };

void bench_queue_add(struct bench_queue *queue, const uint8_t *data, size_t size, bool lost)
{
	struct aux_queue *q = &queue->queue;
	struct aux_span span = { .data = data,
				 .size = size,
				 .position = q->size,
				 .file_offset = q->size,
				 .lost_before = lost };

	if (!size)
		return;
	if (!vec_grow((void **)&queue->spans, &queue->room, q->count, sizeof(span)))
		abort();
	queue->spans[q->count++] = span;
	q->spans = queue->spans;
	q->size += size;
}

void bench_queue_free(struct bench_queue *queue)
{
	free(queue->spans);
	*queue = (struct bench_queue){ 0 };
}

struct pt_config bench_config(const struct sim_options *options)
{
	return (struct pt_config){
		.tsc = options->pt.tsc,
		.mtc = options->pt.mtc,
		.cyc = options->pt.cyc,
		.noretcomp = !options->pt.compress_returns,
		.have_event_trace = options->event_trace,
		.cyc_least = options->pt.cyc_threshold,
		.mtc_shift = options->pt.mtc_shift,
		.ctc_n = options->pt.ctc_n,
		.ctc_d = options->pt.ctc_d,
		.max_nonturbo = SIM_PT_P1,
		.nominal_hz = 2000000000,
	};
}

/* The code goes through a file in memory, as a flat file that a user gives. */
bool bench_add_code(struct machine *machine, uint64_t address, const void *bytes, size_t size)
{
	_cleanup_close_ int fd = memfd_create("code", MFD_CLOEXEC);
	struct ptvm_error error = { 0 };
	char path[64];

	if (!size)
		return true;
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return !machine_add_raw(machine, path, 0, 0, address, &error);
}

bool bench_add_function(struct machine *machine, uint64_t address)
{
	struct symbol symbol = { .start = address, .name = "function", .is_global = true };

	return !symbols_add(&machine->symbols, &symbol) && !symbols_finish(&machine->symbols, true);
}

static bool add_code(struct machine *machine, const struct sim_code *code)
{
	bool good = bench_add_code(machine, code->base, code->bytes, code->size);

	for (unsigned i = 0; good && i < SIM_FUNCTIONS; i++)
		if (code->functions[i] < code->insns.count && code->base >> 63)
			good = bench_add_function(machine,
						  code->insns.items[code->functions[i]].ip);
	return good;
}

bool bench_guest_new(struct machines *machines)
{
	struct machine *guest = machine_new(0, true);

	if (!guest || !vec_grow((void **)&machines->guests, &machines->guest_room,
				machines->guest_count, sizeof(guest)))
		return false;
	machines->guests[machines->guest_count++] = guest;
	return true;
}

bool bench_machines_new(struct machines *ret)
{
	*ret = (struct machines){ .host = machine_new(0, false) };
	return ret->host && bench_guest_new(ret);
}

bool bench_machines(const struct sim_vm *vm, struct machines *ret)
{
	bool good;

	good = bench_machines_new(ret) && add_code(ret->host, &vm->machines[0].kernel) &&
	       add_code(ret->host, &vm->machines[0].user);
	for (unsigned i = 1; good && i <= vm->options.guests; i++)
		good = add_code(ret->guests[0], &vm->machines[i].kernel) &&
		       add_code(ret->guests[0], &vm->machines[i].user);
	return good;
}

struct reader {
	struct bench_list *list;
	uint64_t tsc;
	bool nr;
};

static void push_item(struct bench_list *list, struct bench_item item)
{
	if (!vec_push(list, item))
		abort();
	list->gaps += item.is_gap;
}

static void read_item(struct reader *reader, const struct flow_batch *batch,
		      const struct flow_item *item)
{
	switch ((enum flow_kind)item->kind) {
	case FLOW_BLOCK:
		for (uint32_t i = 0; i < item->count; i++)
			push_item(reader->list, (struct bench_item){ .ip = item->block->insns[i].ip,
								     .tsc = reader->tsc,
								     .nr = reader->nr });
		break;
	case FLOW_TIME: reader->tsc = item->value; break;
	case FLOW_CONTEXT: reader->nr = batch->contexts[item->value].nr; break;
	case FLOW_GAP:
		push_item(reader->list, (struct bench_item){ .is_gap = true,
							     .tsc = reader->tsc,
							     .gap = (uint8_t)item->count });
		break;
	case FLOW_AT: reader->list->items[reader->list->count - 1].ip = item->value; break;
	default: break;
	}
}

static void decode_segment(const struct pt_segment *segment, const struct pt_config *config,
			   const struct flow_code *where, struct flow_batch *batch,
			   struct bench_list *list)
{
	struct reader reader = { .list = list };
	struct pt_flow flow;
	int r;

	pt_flow_init(&flow, segment, config, where, false);
	do {
		batch->room = FLOW_BATCH;
		r = pt_flow_run(&flow, batch);
		for (uint32_t i = 0; list && i < batch->count; i++)
			read_item(&reader, batch, &batch->items[i]);
	} while (!r);
}

/* With `forgets`, each segment begins without code that was read before. */
static void decode(const struct aux_queue *queue, const struct pt_config *config,
		   const struct machines *machines, uint64_t min_size, struct flow_code where,
		   bool forgets, struct bench_list *ret)
{
	struct flow_batch *batch = malloc(sizeof(*batch));
	struct pt_segment segment;
	struct pt_walk walk;
	struct code code;

	if (!batch)
		abort();
	where.code = &code;
	if (ret)
		*ret = (struct bench_list){ 0 };
	code_init(&code, machines);
	pt_walk_init(&walk, queue, config, NULL, min_size);
	while (!pt_walk_next(&walk, &segment)) {
		decode_segment(&segment, config, &where, batch, ret);
		if (forgets) {
			code_free(&code);
			code_init(&code, machines);
		}
	}
	code_free(&code);
	free(batch);
}

/* Leaves only the gaps, which are all that a flow with `gaps_only` promises. */
static void keep_gaps(struct bench_list *list)
{
	list->count = 0;
	for (size_t i = 0; list->count < list->gaps; i++)
		if (list->items[i].is_gap)
			list->items[list->count++] = list->items[i];
}

static uint64_t count_segment(const struct pt_segment *segment, const struct pt_config *config,
			      const struct flow_code *where, bool gaps_only,
			      struct bench_list *gaps)
{
	struct flow_batch *batch = malloc(sizeof(*batch));
	struct reader reader = { .list = gaps };
	struct pt_flow flow;
	int r;

	if (!batch)
		abort();
	pt_flow_init(&flow, segment, config, where, gaps_only);
	batch->room = FLOW_BATCH;
	do {
		r = pt_flow_run(&flow, batch);
		for (uint32_t i = 0; i < batch->count; i++)
			read_item(&reader, batch, &batch->items[i]);
	} while (!r);
	keep_gaps(gaps);
	free(batch);
	return flow.insns;
}

static void count(const struct aux_queue *queue, const struct pt_config *config, struct code *code,
		  bool gaps_only, struct bench_count *ret)
{
	const struct flow_code where = { .code = code, .pid = 0 };
	struct pt_segment segment;
	struct pt_walk walk;

	*ret = (struct bench_count){ 0 };
	pt_walk_init(&walk, queue, config, NULL, 0);
	while (!pt_walk_next(&walk, &segment))
		ret->insns += count_segment(&segment, config, &where, gaps_only, &ret->gaps);
	code_free(code);
}

void bench_count(const struct aux_queue *queue, const struct pt_config *config,
		 const struct machines *machines, bool gaps_only, struct bench_count *ret)
{
	struct code code;

	code_init(&code, machines);
	count(queue, config, &code, gaps_only, ret);
}

void bench_count_forgetting(const struct aux_queue *queue, const struct pt_config *config,
			    const struct machines *machines, struct bench_count *ret)
{
	struct code code;

	code_init(&code, machines);
	code.most_bytes = 0;
	count(queue, config, &code, true, ret);
}

void bench_decode(const struct aux_queue *queue, const struct pt_config *config,
		  const struct machines *machines, uint64_t min_size, struct bench_list *ret)
{
	const struct flow_code where = { .pid = 0 };
	struct trace_sources sources;
	struct module_doubts doubts;
	struct code_visits visits;

	sources = (struct trace_sources){ .config = config, .machines = machines };
	if (trace_sources_add(&sources, queue, &where))
		abort();
	code_visits_init(&visits, &sources);
	module_doubts_init(&doubts, &sources);
	decode(queue, config, machines, min_size, (struct flow_code){ .doubts = &doubts }, false,
	       ret);
	module_doubts_free(&doubts);
	code_visits_free(&visits);
	trace_sources_free(&sources);
}

void bench_decode_informed(const struct aux_queue *queue, const struct pt_config *config,
			   const struct machines *machines, bool forgets, struct bench_list *ret)
{
	const struct flow_code where = { .pid = 0 };
	struct patch_inference inference;

	patch_inference_init(&inference, config, machines, &(struct pt_offsets){ 0 });
	if (trace_sources_add(&inference.sources, queue, &where))
		abort();
	decode(queue, config, machines, 0, (struct flow_code){ .inference = &inference }, forgets,
	       ret);
	patch_inference_free(&inference);
}

void bench_decode_as_copied(const struct aux_queue *queue, const struct pt_config *config,
			    const struct machines *machines, uint64_t min_size,
			    struct bench_list *ret)
{
	struct patch_candidates candidates = { .asked = PATCH_ASKED_MAX };

	decode(queue, config, machines, min_size, (struct flow_code){ .candidates = &candidates },
	       false, ret);
}

void bench_list_free(struct bench_list *list)
{
	vec_free(list);
}
