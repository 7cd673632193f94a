#include "decode/patch_forms.h"

#include <stdio.h>
#include <string.h>

#include "decode/label_targets.h"

enum { SYMBOLS_COST = 4096 }; /* in instructions, of going through all symbols */

static const uint8_t nop2[] = { 0x66, 0x90 }, nop5[] = { 0x0f, 0x1f, 0x44, 0, 0 };

/* A direct jump or call of 2 or 5 bytes. */
static void write_branch(struct patch_form *form, const struct insn *insn, uint8_t opcode)
{
	uint64_t distance = form->to - insn_next(insn);

	form->bytes[0] = opcode;
	memcpy(form->bytes + 1, &distance, form->size - 1u);
}

/* A jump label: what goes to the next instruction is a NOP. */
static void add_label(struct patch_forms *forms, const struct insn *insn, uint64_t to,
		      unsigned unlikely)
{
	struct patch_form *form = &forms->items[forms->count++];

	*form = (struct patch_form){ .to = to,
				     .size = insn->length,
				     .unlikely = (uint8_t)unlikely };
	if (to != insn_next(insn))
		write_branch(form, insn, insn->length == 2 ? 0xeb : 0xe9);
	else
		memcpy(form->bytes, insn->length == 2 ? nop2 : nop5, insn->length);
}

static void add_labels(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		       struct patch_forms *ret)
{
	struct label_targets targets;
	/* with a second copy, a label must have changed twice to be as before */
	unsigned least = machine_has_later_code(machine) ? PATCH_IMPROBABLE : 0;

	label_targets_find(machine, insn, time_ns, &targets);
	ret->looked_at += targets.looked_at;
	for (unsigned i = 0; i < targets.count && ret->count < PATCH_FORMS_MAX; i++)
		add_label(ret, insn, targets.items[i],
			  i < targets.back_count   ? least
			  : i < targets.dead_count ? least + 1
						   : least + PATCH_IMPROBABLE);
}

/* Returns whether a later copy differs. */
static bool add_later(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		      struct patch_forms *ret)
{
	struct patch_form *form = &ret->items[ret->count];
	struct insn later;
	struct bytes bytes;

	bytes = machine_later_code(machine, insn->ip, insn->length, time_ns);
	if (!bytes.size)
		return false;
	if (insn_read(bytes.data, bytes.size, insn->ip, 64, &later))
		return true;
	*form = (struct patch_form){ .size = later.length, .is_known = true };
	memcpy(form->bytes, later.bytes, later.length);
	form->to = later.class == INSN_JMP || later.class == INSN_CALL ? later.target
								       : insn_next(&later);
	ret->count++;
	return true;
}

/* What a function is called that begins there; NULL for no function. */
static const char *function_at(struct machine *machine, uint64_t ip, uint64_t time_ns)
{
	struct symbol_view view;

	machine_symbol(machine, -1, ip, time_ns, &view);
	return view.offset ? NULL : view.name;
}

static bool begins_with(const char *name, const char *prefix)
{
	return name && !strncmp(name, prefix, strlen(prefix));
}

/* The call by which ftrace is told that a function begins (arch/x86/kernel/ftrace.c); when nobody
 * asks any more, it is a NOP. */
static bool is_ftrace_call(const char *callee)
{
	return callee && (!strcmp(callee, "ftrace_caller") ||
			  !strcmp(callee, "ftrace_regs_caller") || !strcmp(callee, "__fentry__"));
}

/* The name of the tracepoint whose probes a static call goes to: by way of a function that calls
 * all of them, as long as there is not exactly one (kernel/tracepoint.c). */
static const char *tracepoint_of(const char *callee)
{
	if (begins_with(callee, "__traceiter_"))
		return callee + strlen("__traceiter_");
	return begins_with(callee, "__SCT__tp_func_") ? callee + strlen("__SCT__tp_func_") : NULL;
}

/* A probe, if there is a function of that name. */
static void add_probe(struct machine *machine, const struct insn *insn, const char *prefix,
		      const char *class, const char *suffix, struct patch_forms *ret)
{
	struct patch_form *form = &ret->items[ret->count];
	char name[128];
	uint64_t to;

	if (snprintf(name, sizeof(name), "%s%s%s", prefix, class, suffix) >= (int)sizeof(name))
		return;
	to = machine_symbol_address(machine, name);
	ret->looked_at += SYMBOLS_COST;
	if (!to || ret->count == PATCH_FORMS_MAX)
		return;
	*form = (struct patch_form){ .to = to, .size = insn->length };
	write_branch(form, insn, insn->bytes[0]);
	ret->count++;
}

/* The only probe of a tracepoint is called directly. It is the one of its class, which has its name
 * or one like it. */
static void add_probes(struct machine *machine, const struct insn *insn, const char *tracepoint,
		       struct patch_forms *ret)
{
	static const char *const prefixes[] = { "trace_event_raw_event_", "perf_trace_" };
	static const char *const suffixes[] = { "", "_template", "_class" };

	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 3; k++)
			add_probe(machine, insn, prefixes[i], tracepoint, suffixes[k], ret);
}

/* A call of which kernels make another. */
static void add_calls(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		      struct patch_forms *ret)
{
	const char *callee = function_at(machine, insn->target, time_ns);
	const char *tracepoint = tracepoint_of(callee);

	if (tracepoint)
		add_probes(machine, insn, tracepoint, ret);
	else if (is_ftrace_call(callee))
		add_label(ret, insn, insn_next(insn), 0);
}

static bool is_call(const struct insn *insn)
{
	return insn->class == INSN_CALL && insn->length == 5;
}

bool patch_forms_may_be(struct machine *machine, const struct insn *insn, uint64_t time_ns)
{
	return label_targets_is_label(insn) || is_call(insn) ||
	       machine_later_code(machine, insn->ip, insn->length, time_ns).size;
}

void patch_forms_find(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		      struct patch_forms *ret)
{
	ret->count = ret->looked_at = 0;
	if (add_later(machine, insn, time_ns, ret))
		return;
	if (label_targets_is_label(insn))
		add_labels(machine, insn, time_ns, ret);
	else if (is_call(insn) && !machine_has_later_code(machine))
		add_calls(machine, insn, time_ns, ret);
}
