#include "decode/print/sample_flags.h"

enum {
	MODIFIERS = SAMPLE_IN_TX | SAMPLE_IF_CLEAR | SAMPLE_IF_TOGGLE,
	NAME_COLUMNS = 15,
	ALL_COLUMNS = 21,
};

static const uint32_t class_flags[] = {
	[INSN_JMP] = SAMPLE_BRANCH,
	[INSN_JMP_INDIRECT] = SAMPLE_BRANCH,
	[INSN_FAR_JMP] = SAMPLE_BRANCH,
	[INSN_CALL] = SAMPLE_BRANCH | SAMPLE_CALL,
	[INSN_CALL_INDIRECT] = SAMPLE_BRANCH | SAMPLE_CALL,
	[INSN_FAR_CALL] = SAMPLE_BRANCH | SAMPLE_CALL,
	[INSN_JCC] = SAMPLE_BRANCH | SAMPLE_CONDITIONAL,
	[INSN_RET] = SAMPLE_BRANCH | SAMPLE_RETURN,
	[INSN_FAR_RET] = SAMPLE_BRANCH | SAMPLE_RETURN,
	[INSN_INT] = SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_INTERRUPT,
	[INSN_IRET] = SAMPLE_BRANCH | SAMPLE_RETURN | SAMPLE_INTERRUPT,
	[INSN_SYSCALL] = SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_SYSCALL,
	[INSN_SYSRET] = SAMPLE_BRANCH | SAMPLE_RETURN | SAMPLE_SYSCALL,
	[INSN_VMENTRY] = SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_VMENTRY,
};

uint32_t sample_flags_of(enum insn_class class)
{
	return class_flags[class];
}

static const struct {
	uint32_t flags;
	const char *name;
} names[] = {
	{ SAMPLE_BRANCH | SAMPLE_CALL, "call" },
	{ SAMPLE_BRANCH | SAMPLE_RETURN, "return" },
	{ SAMPLE_BRANCH | SAMPLE_CONDITIONAL, "jcc" },
	{ SAMPLE_BRANCH, "jmp" },
	{ SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_INTERRUPT, "int" },
	{ SAMPLE_BRANCH | SAMPLE_RETURN | SAMPLE_INTERRUPT, "iret" },
	{ SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_SYSCALL, "syscall" },
	{ SAMPLE_BRANCH | SAMPLE_RETURN | SAMPLE_SYSCALL, "sysret" },
	{ SAMPLE_BRANCH | SAMPLE_ASYNC, "async" },
	{ SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_ASYNC | SAMPLE_INTERRUPT, "hw int" },
	{ SAMPLE_BRANCH | SAMPLE_TX_ABORT, "tx abrt" },
	{ SAMPLE_BRANCH | SAMPLE_TRACE_BEGIN, "tr strt" },
	{ SAMPLE_BRANCH | SAMPLE_TRACE_END, "tr end" },
	{ SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_VMENTRY, "vmentry" },
	{ SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_VMEXIT, "vmexit" },
};

static const char *name_of(uint32_t flags)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].flags == flags)
			return names[i].name;
	return NULL;
}

/* "call", "tr end  call": a name, or two where the trace begins or ends with it. */
static bool add_name(struct text *text, uint32_t flags)
{
	const char *name = name_of(flags);

	if (name) {
		text_left(text, name, NAME_COLUMNS);
		return true;
	}
	if (flags & SAMPLE_TRACE_BEGIN && (name = name_of(flags & ~SAMPLE_TRACE_BEGIN)))
		text_puts(text, "tr strt ");
	else if (flags & SAMPLE_TRACE_END && (name = name_of(flags & ~SAMPLE_TRACE_END)))
		text_puts(text, "tr end  ");
	else
		return false;
	text_left(text, name, NAME_COLUMNS - 8);
	return true;
}

static void add_letters(struct text *text, uint32_t flags)
{
	for (unsigned i = 0; i < 15; i++)
		if (flags >> i & 1)
			text_putc(text, "bcrosyiABExghDt"[i]);
}

static void add_modifiers(struct text *text, uint32_t flags)
{
	char inside[8] = "(";

	if (flags & SAMPLE_IN_TX)
		strcat(inside, "x");
	if (flags & SAMPLE_IF_CLEAR)
		strcat(inside, "D");
	if (flags & SAMPLE_IF_TOGGLE)
		strcat(inside, "t");
	text_right(text, strcat(inside, ")"), ALL_COLUMNS - NAME_COLUMNS);
}

void sample_flags_text(struct text *text, uint32_t flags)
{
	size_t start;

	text_puts(text, "  ");
	start = text->size;
	if (!add_name(text, flags & ~MODIFIERS))
		add_letters(text, flags);
	else if (flags & MODIFIERS)
		add_modifiers(text, flags);
	while (text->size < start + ALL_COLUMNS && !text->failed)
		text_putc(text, ' ');
	text_putc(text, ' ');
}
