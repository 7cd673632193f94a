/* The argument of -F: a list of fields, or changes to the fields there would be. */
#include "decode/print/fields.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/spelling.h"

/* The kinds of events that a list may be for. Lines made of the trace belong to two kinds of perf.
 */
static const struct list_kind {
	const char *name;
	unsigned kinds; /* a bit for each enum event_kind */
} list_kinds[] = {
	{ "hw", 1 << EVENT_OF_TRACE | 1 << EVENT_HARDWARE },
	{ "synth", 1 << EVENT_OF_TRACE },
	{ "sw", 1 << EVENT_SOFTWARE },
	{ "trace", 1 << EVENT_TRACEPOINT },
	{ "raw", 1 << EVENT_RAW },
	{ "break", 1 << EVENT_BREAKPOINT },
};

static const struct {
	const char *name;
	uint32_t field;
} names[] = {
	{ "comm", FIELD_COMM },
	{ "tid", FIELD_TID },
	{ "pid", FIELD_PID },
	{ "cpu", FIELD_CPU },
	{ "time", FIELD_TIME },
	{ "event", FIELD_EVENT },
	{ "period", FIELD_PERIOD },
	{ "ip", FIELD_IP },
	{ "sym", FIELD_SYM },
	{ "symoff", FIELD_SYMOFF },
	{ "dso", FIELD_DSO },
	{ "addr", FIELD_ADDR },
	{ "flags", FIELD_FLAGS },
	{ "insn", FIELD_INSN },
	{ "insnlen", FIELD_INSNLEN },
	{ "ipc", FIELD_IPC },
	{ "machine_pid", FIELD_MACHINE_PID },
	{ "vcpu", FIELD_VCPU },
	{ "synth", FIELD_SYNTH },
	{ "vmcs", FIELD_VMCS },
	{ "nr", FIELD_NR },
	{ "callindent", FIELD_CALLINDENT },
	{ "disasm", FIELD_DISASM },
	{ "trace", FIELD_TRACE },
	{ "brstack", FIELD_BRSTACK },
};

const char fields_words[] = "comm tid pid cpu time event period ip sym symoff dso addr flags insn "
			    "insnlen ipc machine_pid vcpu synth vmcs nr callindent disasm trace "
			    "brstack";

/* What the words so far have made of the fields. */
struct change {
	bool any, list; /* a word was there; it had neither + nor - */
	uint32_t fields;
};

static bool word_is(const char *word, size_t length, const char *name)
{
	return strlen(name) == length && !memcmp(word, name, length);
}

/* 0 for a name that does not exist. */
static unsigned kinds_find(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof(list_kinds) / sizeof(*list_kinds); i++)
		if (word_is(word, length, list_kinds[i].name))
			return list_kinds[i].kinds;
	return 0;
}

/* 0 for a name that does not exist. */
static uint32_t field_find(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (word_is(word, length, names[i].name))
			return names[i].field;
	return 0;
}

/* Fields of `perf script` that are not here. */
static bool is_of_perf(const char *word)
{
	static const char *const fields[] = {
		"srcline",        "srccode",  "brstacksym", "brstackoff",     "brstackinsn",
		"brstackinsnlen", "iregs",    "uregs",      "bpf-output",     "phys_addr",
		"metric",         "misc",     "tod",        "data_page_size", "code_page_size",
		"ins_lat",        "weight",   "cgroup",     "retire_lat",     "dsoff",
		"brcntr",         "data_src",
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (!strcmp(word, fields[i]))
			return true;
	return false;
}

static int refuse_field(const char *text, size_t length, struct ptvm_error *error)
{
	char word[32];
	struct spelling spelling = { .word = word };

	(void)snprintf(word, sizeof(word), "%.*s", (int)length, text);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		spelling_try(&spelling, names[i].name);
	if (is_of_perf(word))
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "-F: perf's field '%s' is not here: there are %s", word,
				 fields_words);
	if (spelling.nearest)
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "-F: no field is called '%.*s', did you mean '%s'?", (int)length,
				 text, spelling.nearest);
	return ptvm_fail(error, PTVM_BAD_USAGE, "-F: no field is called '%.*s': there are %s",
			 (int)length, text, fields_words);
}

static int read_word(struct change *change, const char *word, size_t length,
		     struct ptvm_error *error)
{
	bool list = *word != '+' && *word != '-';
	uint32_t field = list ? field_find(word, length) : field_find(word + 1, length - 1);

	if (!field)
		return refuse_field(word + !list, length - !list, error);
	if (change->any && change->list != list)
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "-F: '%.*s' mixes a list of fields with + and -", (int)length,
				 word);
	if (list && !change->any)
		change->fields = 0;
	change->any = true;
	change->list = list;
	if (*word == '-')
		change->fields &= ~field;
	else
		change->fields |= field;
	return 0;
}

/* Step over a kind of events and its colon; `ret` has the kinds that the list is for. */
static int read_kind(const char **text, unsigned *ret, struct ptvm_error *error)
{
	const char *colon = strchr(*text, ':');

	*ret = (1 << EVENT_KINDS) - 1;
	if (!colon)
		return 0;
	*ret = kinds_find(*text, (size_t)(colon - *text));
	if (!*ret)
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "-F: no kind of events is called '%.*s': there are hw sw trace "
				 "raw break synth",
				 (int)(colon - *text), *text);
	*text = colon + 1;
	return 0;
}

int fields_parse(const char *text, enum event_kind kind, uint32_t *fields, struct ptvm_error *error)
{
	struct change change = { .fields = *fields };
	unsigned kinds;
	int r = read_kind(&text, &kinds, error);

	if (r >= 0 && !*text && !(kinds & 1 << EVENT_OF_TRACE))
		change = (struct change){ .any = true };

	while (r >= 0 && *text) {
		size_t length = strcspn(text, ",");

		if (length)
			r = read_word(&change, text, length, error);
		text += length;
		text += *text == ',';
	}
	if (r < 0)
		return r;
	if (!change.any)
		return ptvm_fail(error, PTVM_BAD_USAGE, "-F: the list has no field");
	if (kinds & 1 << kind)
		*fields = change.fields;
	return 0;
}
