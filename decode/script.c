#include "decode/script.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/print/record_lines.h"
#include "decode/print/sample_line.h"

void script_times(const struct perf_data *data, uint64_t *first, uint64_t *last)
{
	struct record_trail trail = perf_data_trail(data);

	*first = data->features.first_sample_ns;
	*last = data->features.last_sample_ns;
	for (size_t i = 0; !data->features.last_sample_ns && i < data->records.count; i++) {
		const struct perf_record *record = &data->records.items[i];

		perf_data_step(&trail, record->data, record->size);
		if (record->type != PERF_ITRACE_START && record->type != PERF_AUX)
			continue;
		if (!*first)
			*first = record->time;
		*last = record->time;
	}
}

static int parse_list(const char *option, const char *text, struct number_ranges *ret,
		      struct ptvm_error *error)
{
	return text ? number_ranges_parse(option, text, ret, error) : 0;
}

static int parse_selection(struct script *script, struct ptvm_error *error)
{
	const struct script_args *args = &script->args;
	struct print_config *print = &script->print;
	int r = 0;

	print->comms = args->comms;
	print->guest_only = args->guest_only;
	print->host_only = args->host_only;
	if (args->guest_only && args->host_only)
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "--guest-only and --host-only exclude each other");
	if (args->relative_time && args->delta_time)
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "--reltime and --deltatime exclude each other");
	if (args->dump && (args->times || args->tids || args->pids || args->comms || args->vcpus ||
			   args->vmcs || args->guest_only || args->host_only))
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "-D is of all records and packets: of the selections it takes "
				 "-C and --max-lines");
	if (!args->pt)
		r = parse_list("-C", args->cpus, &print->cpus, error);
	if (!r)
		r = parse_list("--tid", args->tids, &print->tids, error);
	if (!r)
		r = parse_list("--pid", args->pids, &print->pids, error);
	if (!r)
		r = parse_list("--vcpu", args->vcpus, &print->vcpus, error);
	if (!r)
		r = parse_list("--vmcs", args->vmcs, &print->vmcs, error);
	return r;
}

/* A trace of threads has their numbers instead of those of CPUs; a dump takes -C all the same. */
static int check_cpus(const struct script *script, struct ptvm_error *error)
{
	const struct script_args *args = &script->args;

	if (args->pt || args->dump || !args->cpus || !script->queue_count)
		return 0;
	for (size_t i = 0; i < script->queue_count; i++)
		if (script->queues[i].cpu >= 0)
			return 0;
	return ptvm_fail(error, PTVM_BAD_USAGE,
			 "-C: the recording does not say on which CPU its threads ran; --tid "
			 "selects one of them");
}

static int parse_times(struct script *script, struct ptvm_error *error)
{
	const struct script_args *args = &script->args;
	uint64_t first = 0, last = 0;

	if (!args->times)
		return 0;
	if (time_ranges_have_percent(args->times)) {
		script_times(&script->data, &first, &last);
		if (!last)
			return ptvm_fail(error, PTVM_BAD_USAGE,
					 "the recording does not say when it begins and ends: "
					 "give --time in seconds");
	}
	return time_ranges_parse(args->times, first, last, &script->print.times, error);
}

static const char *step_itrace(const struct script_step *step)
{
	switch (step->kind) {
	case STEP_ITRACE: return step->text;
	case STEP_INSN_TRACE: return "i0ns";
	case STEP_CALL_TRACE: return "cewp";
	case STEP_CALL_RET_TRACE: return "crewp";
	default: return NULL;
	}
}

static bool has_trace(const struct script *script)
{
	return script->args.pt || script->data.have_pt;
}

const char *script_pebs_event(const struct script *script)
{
	for (size_t i = 0; i < script->data.events.count; i++)
		if (script->data.events.items[i].flags & PERF_FLAG_AUX_OUTPUT)
			return script->data.events.items[i].name;
	return NULL;
}

static int parse_itrace(struct script *script, struct ptvm_error *error)
{
	struct itrace itrace = { 0 };
	bool any = false;

	for (unsigned i = 0; i < script->args.step_count; i++) {
		const char *text = step_itrace(&script->args.steps[i]);
		int r = text ? itrace_add(text, &itrace, error) : 0;

		if (r)
			return r;
		any |= !!text;
	}
	if (itrace.pebs && script_pebs_event(script))
		return ptvm_fail(
			error, PTVM_BAD_USAGE,
			"--itrace: 'o' (PEBS by way of the trace) is not decoded yet, leave "
			"it out");
	if (!any)
		itrace_default(&itrace);
	if (!has_trace(script))
		itrace.samples = (struct origin_limits){ 0 };
	/* as in perf: without TNT packets nobody knows the way from one address to the next */
	if (!itrace.quick && has_trace(script) && script->print.pt->no_tnt)
		itrace.quick = 1;
	script->print.itrace = itrace;
	script->print.timeless = itrace.timeless || (has_trace(script) && !script->print.pt->tsc);
	return 0;
}

/* By the rules of no-color.org. A dumb terminal would show the codes of colours. */
static bool wants_color(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_color && *no_color) &&
	       !(term && !strcmp(term, "dumb"));
}

/* What else comes with a preset. */
static void apply_presets(struct script *script)
{
	enum { PERF_DSO_WIDTH = 50 };
	struct print_config *print = &script->print;

	print->nanoseconds = script->args.nanoseconds;
	print->color = wants_color();
	for (unsigned i = 0; i < script->args.step_count; i++) {
		unsigned kind = script->args.steps[i].kind;

		print->nanoseconds |= kind != STEP_FIELDS && kind != STEP_ITRACE;
		if (kind == STEP_CALL_TRACE)
			print->dso_width = PERF_DSO_WIDTH;
	}
}

enum {
	EXCLUDE_USER = 1 << 4,
	EXCLUDE_KERNEL = 1 << 5,
	EXCLUDE_HV = 1 << 6,
	EXCLUDE_HOST = 1 << 19,
	EXCLUDE_GUEST = 1 << 20,
};

/* Whom an event is about, as perf appends it to names: ":k" leaves user code out. Host and guest
 * are among it where they are not as perf has them by default, which is without the guest if there
 * are no other letters. */
static void modifier_text(uint64_t flags, char ret[MODIFIER_SIZE])
{
	static const struct {
		char letter;
		uint32_t excluded;
	} letters[] = { { 'k', EXCLUDE_KERNEL },
			{ 'u', EXCLUDE_USER },
			{ 'h', EXCLUDE_HV },
			{ 'H', EXCLUDE_HOST },
			{ 'G', EXCLUDE_GUEST } };
	bool by_level = flags & (EXCLUDE_KERNEL | EXCLUDE_USER | EXCLUDE_HV);
	bool by_machine = flags & EXCLUDE_HOST || !(flags & EXCLUDE_GUEST) != by_level;
	unsigned from = by_level ? 0 : 3, to = by_machine ? 5 : 3;
	char *end = ret;

	*end++ = ':';
	for (unsigned i = from; i < to; i++)
		if (!(flags & letters[i].excluded))
			*end++ = letters[i].letter;
	if (end == ret + 1)
		end = ret;
	*end = 0;
}

static void set_modifier(struct script *script)
{
	for (size_t i = 0; i < script->data.events.count; i++)
		if (script->data.events.items[i].is_pt)
			modifier_text(script->data.events.items[i].flags, script->modifier);
	script->print.modifier = script->modifier;
}

/* perf aligns event names to the longest of all events, those it makes up included. */
static void set_name_width(struct script *script)
{
	const char *made_up = script->print.itrace.instructions ? "instructions" : "branches";
	size_t width = 0;

	if (has_trace(script))
		width = strlen(made_up) + strlen(script->modifier);
	for (size_t i = 0; i < script->data.events.count; i++)
		if (strlen(script->data.events.items[i].name) > width)
			width = strlen(script->data.events.items[i].name);
	script->print.name_width = (unsigned)width;
}

static void set_style(struct script *script)
{
	struct print_config *print = &script->print;
	struct text *lead = &script->lead;

	if (print->fields & FIELD_PERIOD) {
		text_dec(lead, 1, 10, ' ');
		text_putc(lead, ' ');
	}
	if (print->fields & FIELD_EVENT) {
		char name[32] = "instructions";

		text_right(lead, strcat(name, print->modifier), print->name_width);
		text_puts(lead, ": ");
	}
	text_putc(lead, 0);
	print->style = (struct block_style){ .fields = print->fields,
					     .lead = lead->data,
					     .intel = script->args.intel };
}

static bool has_samples(const struct script *script)
{
	for (size_t i = 0; i < script->data.events.count; i++)
		if (sample_is_expected(&script->data.events.items[i]))
			return true;
	return false;
}

static void set_records(struct script *script)
{
	const struct script_args *args = &script->args;
	unsigned records = 0;

	records |= args->show_switch ? RECORDS_SWITCH : 0;
	records |= args->show_task ? RECORDS_TASK : 0;
	records |= args->show_mmap ? RECORDS_MMAP : 0;
	records |= args->show_lost ? RECORDS_LOST : 0;
	records |= args->show_namespace ? RECORDS_NAMESPACE : 0;
	records |= args->show_cgroup ? RECORDS_CGROUP : 0;
	records |= args->show_bpf ? RECORDS_BPF : 0;
	records |= args->show_text_poke ? RECORDS_TEXT_POKE : 0;
	records |= has_samples(script) ? RECORDS_SAMPLE : 0;
	script->print.records = records;
}

/* As many threads as this process may have CPUs; a cpu_set_t has no room for those of the largest
 * machines. */
static uint64_t default_jobs(void)
{
	cpu_set_t cpus;

	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		return (uint64_t)CPU_COUNT(&cpus);
	return (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Without times nothing tells where in the trace a sample was taken. */
static int sort_samples(struct script *script)
{
	struct print_config *print = &script->print;
	const struct origin_limits *limits = &print->itrace.samples;

	if (!(limits->calls || limits->branches) || !print->data || !print->pt->conv.valid ||
	    print->timeless || script->args.dump || script->args.header_only)
		return 0;
	print->samples = &script->samples;
	return sample_queues_build(print->data, script->sideband, script->queues,
				   script->queue_count, &script->samples);
}

int script_open(struct script *script, struct ptvm_error *error)
{
	struct print_config *print = &script->print;
	int r;

	r = script_check_input(&script->args, error);
	if (!r)
		r = parse_selection(script, error);
	if (!r)
		r = script_open_input(script, error);
	if (!r)
		r = check_cpus(script, error);
	if (!r)
		r = parse_itrace(script, error);
	if (!r)
		r = script_parse_fields(script, error);
	if (!r)
		r = parse_times(script, error);
	if (r)
		return r;
	if (!script->args.jobs)
		script->args.jobs = default_jobs();
	apply_presets(script);
	print->relative_time = script->args.relative_time;
	print->delta_time = script->args.delta_time;
	set_records(script);
	print->machines = &script->machines;
	print->sideband = script->sideband;
	set_modifier(script);
	set_name_width(script);
	set_style(script);
	script->may_be_empty = print->times.count || print->cpus.count || print->itrace.quick;
	if (!has_trace(script) && !script->args.dump && !script->args.header_only &&
	    !print->records)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: no Intel PT in this recording",
				 script->data.path);
	return script->lead.failed ? -PTVM_NO_MEMORY : sort_samples(script);
}

void script_close(struct script *script)
{
	text_free(&script->lead);
	trace_index_free(&script->index);
	sample_queues_free(&script->samples);
	sideband_free(script->sideband);
	machines_free(&script->machines);
	raw_trace_close(&script->raw);
	perf_data_close(&script->data);
}
