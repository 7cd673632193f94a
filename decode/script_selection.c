/* What a selection asks for that is not in the recording, and what there is instead. */
#include <inttypes.h>
#include <string.h>

#include "decode/print/print_prefix.h"
#include "decode/pt/traced_times.h"
#include "decode/script.h"

enum { MOST_WORDS = 8, WORD_BYTES = 64 };

/* The first few of what there is, each once. */
struct words {
	char items[MOST_WORDS][WORD_BYTES];
	unsigned count;
	bool more;
};

static void add_word(struct words *words, const char *word)
{
	for (unsigned i = 0; i < words->count; i++)
		if (!strcmp(words->items[i], word))
			return;
	words->more |= words->count == MOST_WORDS;
	if (words->count < MOST_WORDS)
		(void)snprintf(words->items[words->count++], WORD_BYTES, "%s", word);
}

static void add_words(struct text *text, const struct words *words)
{
	for (unsigned i = 0; i < words->count; i++) {
		text_puts(text, i ? ", " : ": there are ");
		text_name(text, words->items[i]);
	}
	text_puts(text, !words->count ? ": there are none" : words->more ? " and others" : "");
}

static void begin(struct text *text, const char *option, const char *given)
{
	text_puts(text, text->size ? " " : "nothing matches ");
	text_puts(text, option);
	if (!given)
		return;
	text_putc(text, ' ');
	text_puts(text, given);
}

static bool explain_cpus(const struct script *script, struct text *text)
{
	const struct perf_data *data = &script->data;
	struct words words = { .count = 0 };
	char word[WORD_BYTES];

	for (size_t i = 0; i < data->records.count + data->queues.count; i++) {
		int32_t cpu = i < data->records.count
				      ? data->records.items[i].cpu
				      : data->queues.items[i - data->records.count].cpu;

		if (cpu < 0 || (i < data->records.count && !data->records.items[i].time))
			continue;
		if (number_ranges_has(&script->print.cpus, cpu))
			return false;
		(void)snprintf(word, sizeof(word), "%d", cpu);
		add_word(&words, word);
	}
	begin(text, "-C", script->args.cpus);
	add_words(text, &words);
	return true;
}

static void add_time(struct text *text, const char *before, uint64_t time_ns)
{
	text_puts(text, before);
	text_dec(text, time_ns / 1000000000, 0, ' ');
	text_putc(text, '.');
	text_dec(text, time_ns % 1000000000, 9, '0');
}

/* Nothing was traced in the range, but before or after it. */
static bool explain_pause(const struct script *script, struct text *text)
{
	const struct time_ranges *times = &script->print.times;
	struct traced_times traced = { .within = times->count != 1 };

	for (size_t i = 0; !traced.within && i < script->queue_count; i++)
		if (number_ranges_has(&script->print.cpus, script->queues[i].cpu))
			traced_times_add(&script->queues[i], script->print.pt,
					 &script->print.mapping, times->items, &traced);
	if (traced.within || (!traced.before && !traced.after))
		return false;
	begin(text, "--time", script->args.times);
	text_puts(text, ": nothing was traced");
	if (traced.before)
		add_time(text, traced.after ? " from " : " after ", traced.before);
	if (traced.after)
		add_time(text, traced.before ? " to " : " before ", traced.after);
	return true;
}

static bool explain_times(const struct script *script, struct text *text)
{
	const struct time_ranges *times = &script->print.times;
	uint64_t first, last;

	if (script->print.timeless) {
		begin(text, "--time", script->args.times);
		text_puts(text, ": the trace has no times");
		return true;
	}
	script_times(&script->data, &first, &last);
	if (!last)
		return false;
	for (unsigned i = 0; i < times->count; i++)
		if (times->items[i].from <= last && times->items[i].to >= first)
			return explain_pause(script, text);
	begin(text, "--time", script->args.times);
	add_time(text, ": the recording is from ", first);
	add_time(text, " to ", last);
	return true;
}

/* A way to select threads: what is given, how it is alone, and what would match. */
struct kind {
	const char *option, *given;
	struct print_config only;
	enum { KIND_PID, KIND_TID, KIND_COMM, KIND_VCPU } what;
};

/* False where the thread is none of the kind. */
static bool make_word(const struct kind *kind, const struct prefix_owner *owner,
		      char word[WORD_BYTES])
{
	const char *comm = owner->comm ? owner->comm : "no name";
	int64_t vcpu;

	switch (kind->what) {
	case KIND_PID: (void)snprintf(word, WORD_BYTES, "%d", owner->pid); break;
	case KIND_TID: (void)snprintf(word, WORD_BYTES, "%d (%s)", owner->tid, comm); break;
	case KIND_COMM: (void)snprintf(word, WORD_BYTES, "'%s'", comm); return owner->comm;
	case KIND_VCPU:
		vcpu = prefix_vcpu(&kind->only, owner);
		(void)snprintf(word, WORD_BYTES, "%" PRId64, vcpu);
		return vcpu >= 0;
	}
	return true;
}

/* Every record says whose thread it is of, and so do traces of threads. */
static struct prefix_owner owner_at(const struct perf_data *data, size_t i)
{
	const struct perf_record *record;
	const struct aux_queue *queue;

	if (i >= data->records.count) {
		queue = &data->queues.items[i - data->records.count];
		return (struct prefix_owner){ queue->pid, queue->tid, UINT64_MAX };
	}
	record = &data->records.items[i];
	return (struct prefix_owner){ record->pid, record->time ? record->tid : -1, record->time };
}

static bool explain_threads(const struct script *script, struct kind *kind, struct text *text)
{
	const struct perf_data *data = &script->data;
	struct words words = { .count = 0 };

	kind->only.data = data;
	kind->only.sideband = script->sideband;
	for (size_t i = 0; i < data->records.count + data->queues.count; i++) {
		struct prefix_owner owner = owner_at(data, i);
		char word[WORD_BYTES];

		if (owner.tid < 0)
			continue;
		owner.comm = sideband_comm(script->sideband, owner.tid, owner.time_ns);
		if (prefix_is_wanted(&kind->only, &owner))
			return false;
		if (make_word(kind, &owner, word))
			add_word(&words, word);
	}
	begin(text, kind->option, kind->given);
	add_words(text, &words);
	return true;
}

/* All that is selected, of which there is each, but not together. */
static void add_all(const struct script_args *args, struct text *text)
{
	const struct {
		const char *option, *given;
	} options[] = {
		{ "-C", args->pt ? NULL : args->cpus },
		{ "--time", args->times },
		{ "--pid", args->pids },
		{ "--tid", args->tids },
		{ "--comms", args->comms },
		{ "--vcpu", args->vcpus },
		{ "--vmcs", args->vmcs },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (options[i].given)
			begin(text, options[i].option, options[i].given);
	if (args->guest_only)
		begin(text, "--guest-only", NULL);
	if (args->host_only)
		begin(text, "--host-only", NULL);
	if (args->vmcs)
		text_puts(text, " (-F vmcs prints which there are)");
}

void script_explain_nothing(const struct script *script, bool left_out, struct text *text)
{
	const struct script_args *args = &script->args;
	const struct print_config *print = &script->print;
	struct kind kinds[] = {
		{ "--pid", args->pids, { .pids = print->pids }, KIND_PID },
		{ "--tid", args->tids, { .tids = print->tids }, KIND_TID },
		{ "--comms", args->comms, { .comms = args->comms }, KIND_COMM },
		{ "--vcpu", args->vcpus, { .vcpus = print->vcpus }, KIND_VCPU },
	};
	bool done = args->pt;

	if (!done && args->cpus)
		done = explain_cpus(script, text);
	if (!done && args->times)
		done = explain_times(script, text);
	for (size_t i = 0; !done && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].given)
			done = explain_threads(script, &kinds[i], text);
	if (!text->size && left_out)
		add_all(args, text);
	else if (!text->size && args->no_itrace && script->data.have_pt)
		text_puts(text, "--no-itrace leaves the trace out, and there is nothing else");
}
