#include "decode/print/print_origin.h"

#include "decode/base/vec.h"
#include "decode/code/machines.h"
#include "decode/perf/perf_data.h"
#include "decode/perf/perf_sample.h"
#include "decode/perf/sample_queues.h"
#include "decode/print/print_branch.h"
#include "decode/print/print_line.h"
#include "decode/print/print_prefix.h"
#include "decode/print/sample_flags.h"
#include "decode/print/sample_line.h"

static bool has_chain(const struct print_config *config)
{
	return config->itrace.chain && config->fields & FIELD_IP;
}

/* perf does not align a name above call chains. */
void print_add_event_prefix(struct printer *printer)
{
	const struct line_prefix *prefix = &printer->prefix;
	size_t name_at = prefix->comm_at + prefix->comm_pad;

	if (!has_chain(printer->config)) {
		print_add_prefix(printer);
		return;
	}
	text_add(&printer->out, prefix->text.data, prefix->comm_at);
	text_add(&printer->out, prefix->text.data + name_at, prefix->text.size - name_at);
}

static void add_call(struct printer *printer, uint64_t ip)
{
	const struct code_space *space = print_space(printer, ip);
	struct symbol_view symbol = address_symbol(space, ip, printer->time_ns);
	uint64_t shown = ip;

	if (space && space->machine)
		shown = machine_file_address(space->machine, space->pid, ip, printer->time_ns);
	text_putc(&printer->out, '\t');
	text_hex(&printer->out, shown, 16);
	symbol_text(&printer->out, &symbol, printer->config->fields);
	text_putc(&printer->out, '\n');
}

/* perf counts the step from the kernel to what called it as an entry, too. */
static void add_chain(struct printer *printer, uint64_t ip)
{
	const struct call_stack *stack =
		call_stack_of(&printer->calls, printer->thread.tid, printer->context.nr);
	unsigned depth = stack ? stack->depth : 0;
	bool in_kernel = ip >> 63;

	text_putc(&printer->out, '\n');
	add_call(printer, ip);
	for (unsigned left = printer->config->itrace.chain - 1; left && depth--; left--) {
		ip = stack->frames[depth].return_ip;
		if (in_kernel != ip >> 63 && left-- == 1)
			break;
		in_kernel = ip >> 63;
		add_call(printer, ip);
	}
}

static const char *dso_of(const struct printer *printer, uint64_t ip, bool in_guest)
{
	const struct machines *machines = printer->config->machines;
	struct machine *machine =
		in_guest ? machines_guest(machines, printer->thread.pid) : machines->host;
	struct symbol_view symbol = { 0 };

	if (machine && ip)
		machine_symbol(machine, printer->thread.pid, ip, printer->time_ns, &symbol);
	return symbol.dso;
}

static void add_branch(struct printer *printer, const struct branch_entry *entry)
{
	const char *dsos[2];

	if (printer->config->fields & FIELD_DSO) {
		dsos[0] = dso_of(printer, entry->from, entry->from_guest);
		dsos[1] = dso_of(printer, entry->to, entry->to_guest);
	}
	branch_entry_text(&printer->out, entry, printer->config->fields & FIELD_DSO ? dsos : NULL);
}

void print_add_origin(struct printer *printer, const struct code_space *space, uint64_t ip)
{
	const struct print_config *config = printer->config;
	const struct last_branches *branches;

	if (has_chain(config))
		add_chain(printer, ip);
	else if (config->fields & FIELD_IP)
		print_add_address(printer, space, ip);
	if (!config->itrace.last_branches || !(config->fields & FIELD_BRSTACK))
		return;
	branches = call_stacks_branches(&printer->calls, printer->thread.tid);
	for (unsigned i = 0; branches && i < branches->count && i < config->itrace.last_branches;
	     i++)
		add_branch(printer, last_branch(branches, i));
}

/* How many branches to keep of each thread. */
static unsigned branches_kept(const struct itrace *itrace)
{
	unsigned kept = itrace->samples.branches;

	kept += kept ? ORIGIN_BRANCHES_SINCE : 0;
	return kept > itrace->last_branches ? kept : itrace->last_branches;
}

void print_origin_branch(struct printer *printer, const struct branch_entry *branch, uint32_t flags)
{
	unsigned kept = branches_kept(&printer->config->itrace);
	struct branch_entry entry = *branch;
	struct last_branches *branches;

	if (!kept)
		return;
	entry.flags |= flags & SAMPLE_TX_ABORT ? BRANCH_ENTRY_ABORT : 0;
	entry.flags |= flags & SAMPLE_IN_TX ? BRANCH_ENTRY_IN_TX : 0;
	branches = call_stacks_branches(&printer->calls, printer->thread.tid);
	if (branches)
		last_branches_add(branches, kept, entry);
}

static void add_sample(struct printer *printer, size_t number)
{
	const struct print_config *config = printer->config;
	const struct perf_record *record = &config->data->records.items[number];
	struct text *out = &printer->out;
	size_t start = out->size;
	struct perf_sample sample;

	if (!sample_read(config->data, record, &sample))
		return;
	sample_origin_add(out, &config->itrace.samples, sample.ip,
			  call_stack_of(&printer->calls, record->tid, sample_in_guest(record)),
			  call_stacks_branches(&printer->calls, record->tid));
	if (out->size > start &&
	    !vec_push(&printer->runs, (struct print_run){ record->time, out->size, number + 1 }))
		out->failed = true;
}

/* The sample that comes next; NULL none. */
static const struct perf_record *next_sample(const struct printer *printer)
{
	const struct sample_list *samples = printer->samples;

	if (!samples || printer->next_sample >= samples->count)
		return NULL;
	return &printer->config->data->records.items[samples->items[printer->next_sample]];
}

static void find_time(struct printer *printer)
{
	const struct perf_record *sample = next_sample(printer);

	printer->sample_ns = sample ? sample->time : UINT64_MAX;
}

void print_origin_init(struct printer *printer)
{
	const struct sample_queues *samples = printer->config->samples;

	if (samples)
		printer->samples = sample_queues_of(samples, printer->queue);
	find_time(printer);
}

void print_origin_of_samples(struct printer *printer, uint64_t until_ns)
{
	enum { MOST_BYTES = 4 << 20 }; /* in a long gap of the trace they are all the same */
	const struct perf_record *sample;

	print_branch_settle(printer);
	prefix_end_run(printer);
	for (; (sample = next_sample(printer)) && sample->time <= until_ns; printer->next_sample++)
		if (printer->out.size < MOST_BYTES)
			add_sample(printer, printer->samples->items[printer->next_sample]);
	find_time(printer);
}

void print_origin_lost(struct printer *printer)
{
	struct last_branches *branches;
	struct call_stack *stack;

	if (!follows_branches(printer->config))
		return;
	print_refresh(printer);
	stack = call_stack_of(&printer->calls, printer->thread.tid, printer->context.nr);
	branches = call_stacks_branches(&printer->calls, printer->thread.tid);
	if (stack)
		stack->depth = 0;
	if (branches)
		branches->count = 0;
}
