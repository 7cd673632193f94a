#include <string.h>

#include "decode/print/sample_line.h"
#include "decode/script.h"

static uint32_t default_fields(const struct script *script)
{
	uint32_t fields = FIELD_COMM | FIELD_TID | FIELD_CPU | FIELD_TIME | FIELD_EVENT |
			  FIELD_PERIOD | FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO |
			  FIELD_ADDR | FIELD_SYNTH;

	if (script->args.pt)
		fields &= ~(uint32_t)(FIELD_COMM | FIELD_TID | FIELD_CPU);
	else if (!script->print.pt->per_cpu)
		fields &= ~(uint32_t)FIELD_CPU;
	if (!script->print.pt->conv.valid || script->print.timeless)
		fields &= ~(uint32_t)FIELD_TIME;
	return fields;
}

/* What a preset does to the fields and events; those of perf script. */
static const char *step_fields(const struct script_step *step)
{
	switch (step->kind) {
	case STEP_FIELDS: return step->text;
	case STEP_INSN_TRACE:
		return strcmp(step->text, "raw") ? "+disasm,-event,-period"
						 : "+insn,-event,-period";
	case STEP_CALL_TRACE: return "-ip,-addr,-event,-period,+callindent";
	case STEP_CALL_RET_TRACE: return "-ip,-addr,-event,-period,+callindent,+flags";
	default: return NULL;
	}
}

/* What the options make of the fields of one kind of lines. */
struct choice {
	uint32_t fields, asked, refused; /* asked, refused: named by an option, with - or without */
	bool is_listed, is_changed;
};

/* perf does not take flags for a field, and does not have the others. */
enum { NO_CHANGE = FIELD_FLAGS | FIELD_VMCS | FIELD_NR };

/* Apply the options in their order. Each is applied three times: to the fields so far, to no
 * fields, which leaves what it adds, and to all fields, which leaves those that it does not take
 * away. */
static int choose(const struct script_args *args, enum event_kind kind, struct choice *choice,
		  struct ptvm_error *error)
{
	for (unsigned i = 0; i < args->step_count; i++) {
		const char *text = step_fields(&args->steps[i]);
		uint32_t flags = choice->fields & FIELD_FLAGS, added = 0, kept = UINT32_MAX;
		int r;

		if (!text)
			continue;
		r = fields_parse(text, kind, &choice->fields, error);
		if (!r)
			r = fields_parse(text, kind, &added, error);
		if (!r)
			r = fields_parse(text, kind, &kept, error);
		if (r)
			return r;
		if (kept == added) /* a list replaces all fields, but in perf it keeps flags */
			choice->fields |= flags;
		choice->asked = (choice->asked & kept) | added;
		choice->refused = (choice->refused | (kept == added ? 0 : ~kept)) & ~added;
		choice->is_changed |= (added | ~kept) & ~(uint32_t)NO_CHANGE;
		choice->is_listed |= kept == added;
	}
	return 0;
}

/* Drop what belongs to an address, or to a symbol, that is not printed. Branches also print a
 * target alone. */
static uint32_t without_strays(uint32_t fields, uint32_t addresses)
{
	if (!(fields & addresses))
		fields &= ~(uint32_t)(FIELD_SYM | FIELD_DSO);
	if (!(fields & FIELD_SYM))
		fields &= ~(uint32_t)FIELD_SYMOFF;
	return fields;
}

/* A target is shown with branches until other fields are chosen. */
static int parse_trace(struct script *script, struct ptvm_error *error)
{
	struct print_config *print = &script->print;
	struct choice choice = { .fields = default_fields(script) };
	int r = choose(&script->args, EVENT_OF_TRACE, &choice, error);

	if (r)
		return r;
	if (choice.is_changed && !(choice.asked & FIELD_ADDR))
		choice.fields &= ~(uint32_t)FIELD_ADDR;
	/* as in perf: who asks for call chains alone wants to see them */
	if (print->itrace.chain && !print->itrace.branches)
		choice.fields |= (FIELD_IP | FIELD_SYM) & ~choice.refused;
	print->fields = without_strays(choice.fields, FIELD_IP | FIELD_ADDR | FIELD_CALLINDENT);
	script->lacks_address = choice.fields & ~print->fields & choice.asked;
	script->lacks_time = choice.asked & FIELD_TIME && print->timeless;
	if (print->itrace.quick) /* not all instructions are seen */
		print->fields &= ~(uint32_t)FIELD_IPC;
	print->insn_addr = choice.asked & FIELD_ADDR;
	print->event_period = choice.asked & FIELD_PERIOD;
	print->full_insns = print->insn_addr || print->itrace.chain ||
			    (print->itrace.last_branches && print->fields & FIELD_BRSTACK);
	return 0;
}

/* Those that perf has for each kind, of the ones that are here. */
static uint32_t sample_defaults(enum event_kind kind)
{
	enum { COMMON = FIELD_COMM | FIELD_TID | FIELD_CPU | FIELD_TIME | FIELD_EVENT };
	enum { PLACE = FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO };

	switch (kind) {
	case EVENT_TRACEPOINT: return COMMON | FIELD_TRACE;
	case EVENT_RAW: return COMMON | FIELD_PERIOD | PLACE | FIELD_ADDR;
	default: return COMMON | FIELD_PERIOD | PLACE;
	}
}

/* As perf: what the samples of the first event of a kind do not have is left out of all, unless it
 * was asked for and may be shown as unknown. */
static uint32_t recorded_fields(const struct perf_event *event, const struct choice *choice)
{
	static const struct {
		uint32_t sample_type, field;
		bool may_be_unknown;
	} needs[] = {
		{ PERF_SAMPLE_IP, FIELD_IP, false },
		{ PERF_SAMPLE_TID, FIELD_PID | FIELD_TID, false },
		{ PERF_SAMPLE_TIME, FIELD_TIME, false },
		{ PERF_SAMPLE_ADDR, FIELD_ADDR, true },
		{ PERF_SAMPLE_CPU, FIELD_CPU, true },
	};
	uint32_t fields = choice->fields;

	for (size_t i = 0; i < sizeof(needs) / sizeof(*needs); i++)
		if (!(event->sample_type & needs[i].sample_type) &&
		    !(needs[i].may_be_unknown && choice->asked & needs[i].field))
			fields &= ~needs[i].field;
	return without_strays(fields, FIELD_IP | FIELD_ADDR);
}

static const struct perf_event *first_event(const struct perf_data *data, enum event_kind kind,
					    uint64_t sample_type)
{
	for (size_t i = 0; i < data->events.count; i++) {
		const struct perf_event *event = &data->events.items[i];

		if (sample_is_expected(event) && sample_kind(event) == kind &&
		    (event->sample_type & sample_type) == sample_type)
			return event;
	}
	return NULL;
}

static int parse_samples(struct script *script, enum event_kind kind, struct ptvm_error *error)
{
	const struct perf_event *event = first_event(&script->data, kind, 0);
	struct choice choice = { .fields = sample_defaults(kind) };
	int r = choose(&script->args, kind, &choice, error);

	if (r || !event || !choice.fields)
		return r;
	/* call chains are shown where there are some */
	if (kind == EVENT_TRACEPOINT && !choice.is_listed &&
	    first_event(&script->data, kind, PERF_SAMPLE_CALLCHAIN))
		choice.fields |= FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO;
	script->print.sample_fields[kind] = recorded_fields(event, &choice);
	return 0;
}

int script_parse_fields(struct script *script, struct ptvm_error *error)
{
	int r = parse_trace(script, error);

	for (int kind = EVENT_OF_TRACE + 1; !r && kind < EVENT_KINDS; kind++)
		r = parse_samples(script, (enum event_kind)kind, error);
	return r;
}
