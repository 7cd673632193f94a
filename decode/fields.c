/* The argument of -F: a list of fields, or changes to the fields there would be. */
#include <string.h>

#include "decode/script_options.h"

/* perf names the events that a list is for; lines made of the trace are of kind hw or synth. */
static const struct event_kind {
	const char *name;
	bool of_trace;
} event_kinds[] = {
	{ "hw", true },     { "synth", true }, { "sw", false },
	{ "trace", false }, { "raw", false },  { "break", false },
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
};

/* What the words so far have made of the fields. */
struct change {
	bool any, list; /* a word was there; it had neither + nor - */
	uint32_t fields;
};

static bool word_is(const char *word, size_t length, const char *name)
{
	return strlen(name) == length && !memcmp(word, name, length);
}

static const struct event_kind *event_kind_find(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof(event_kinds) / sizeof(*event_kinds); i++)
		if (word_is(word, length, event_kinds[i].name))
			return &event_kinds[i];
	return NULL;
}

/* 0 for a name that does not exist. */
static uint32_t field_find(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (word_is(word, length, names[i].name))
			return names[i].field;
	return 0;
}

static int read_word(struct change *change, const char *word, size_t length,
		     struct ptvm_error *error)
{
	bool list = *word != '+' && *word != '-';
	uint32_t field = list ? field_find(word, length) : field_find(word + 1, length - 1);

	if (!field)
		return ptvm_fail(error, PTVM_BAD_USAGE, "-F: no field is called '%.*s'",
				 (int)(length - !list), word + !list);
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

/* Step over a kind of events and its colon; `ret` is whether lines of the trace are of it. */
static int read_kind(const char **text, bool *ret, struct ptvm_error *error)
{
	const struct event_kind *kind;
	const char *colon = strchr(*text, ':');

	*ret = true;
	if (!colon)
		return 0;
	kind = event_kind_find(*text, (size_t)(colon - *text));
	if (!kind)
		return ptvm_fail(error, PTVM_BAD_USAGE, "-F: no kind of events is called '%.*s'",
				 (int)(colon - *text), *text);
	*ret = kind->of_trace;
	*text = colon + 1;
	return 0;
}

int fields_parse(const char *text, uint32_t *fields, struct ptvm_error *error)
{
	struct change change = { .fields = *fields };
	bool of_trace;
	int r = read_kind(&text, &of_trace, error);

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
	if (of_trace)
		*fields = change.fields;
	return 0;
}
