#include "decode/patch_forms.h"

#include <stdio.h>
#include <string.h>

#include "decode/label_targets.h"
#include "decode/probe_table.h"

enum {
	SYMBOLS_COST = 4096, /* in instructions, of going through all symbols */
	ROW_LABELS = 3,      /* at least, of tracepoints that do the same */
	HOOK_MAX = 24,       /* instructions from where a label leads to the call of probes */
};

static const uint8_t nop2[] = { 0x66, 0x90 }, nop5[] = { 0x0f, 0x1f, 0x44, 0, 0 };

/* The same instruction as a direct jump or call of 2 or 5 bytes. */
static struct patched_insn branch(const struct insn *insn, uint8_t opcode, uint64_t to)
{
	struct patched_insn ret = { .site = insn->ip, .to = to, .size = insn->length };
	uint64_t distance = to - insn_next(insn);

	ret.bytes[0] = opcode;
	memcpy(ret.bytes + 1, &distance, ret.size - 1u);
	return ret;
}

static void add(struct patch_forms *forms, const struct patch_form *form)
{
	if (forms->count < PATCH_FORMS_MAX)
		forms->items[forms->count++] = *form;
}

/* A jump label: what goes to the next instruction is a NOP. */
static struct patched_insn label(const struct insn *insn, uint64_t to)
{
	struct patched_insn ret = { .site = insn->ip, .to = to, .size = insn->length };

	if (to != insn_next(insn))
		return branch(insn, insn->length == 2 ? 0xeb : 0xe9, to);
	memcpy(ret.bytes, insn->length == 2 ? nop2 : nop5, insn->length);
	return ret;
}

static bool read_insn(struct machine *machine, uint64_t ip, uint64_t time_ns, struct insn *ret)
{
	struct code_view view;

	return !machine_code(machine, -1, ip, time_ns, &view) &&
	       !insn_read(view.data, view.left, ip, 64, ret);
}

static bool is_call(const struct insn *insn)
{
	return insn->class == INSN_CALL && insn->length == 5;
}

/* Where a tracepoint is on, the code behind its label calls the probes. What is called changes at
 * the same time. NULL: no tracepoint. */
static const struct probe_entry *find_hook(struct machine *machine, uint64_t ip, uint64_t time_ns,
					   struct insn *ret_call)
{
	const struct probe_table *table = machine_probes(machine);

	for (unsigned i = 0; table && i < HOOK_MAX; i++) {
		const struct probe_entry *entry;

		if (!read_insn(machine, ip, time_ns, ret_call) || ret_call->class == INSN_JMP ||
		    ret_call->class == INSN_RET)
			return NULL;
		entry = is_call(ret_call) ? probe_table_find(table, ret_call->target) : NULL;
		if (entry)
			return entry;
		ip = insn_next(ret_call);
	}
	return NULL;
}

/* Whether further labels follow at once: where one of several tracepoints is enough for something
 * (as in check_schedstat_required(), kernel/sched/fair.c). */
static bool is_in_row(struct machine *machine, const struct insn *insn, uint64_t time_ns)
{
	struct insn next = *insn;

	for (unsigned i = 1; i < ROW_LABELS; i++)
		if (!read_insn(machine, insn_next(&next), time_ns, &next) ||
		    next.length != insn->length || !label_targets_is_label(&next))
			return false;
	return true;
}

static void add_label(struct machine *machine, const struct insn *insn, uint64_t to,
		      uint64_t time_ns, unsigned unlikely, struct patch_forms *ret)
{
	struct patch_form form = { .insn = label(insn, to), .unlikely = (uint8_t)unlikely };
	const struct probe_entry *entry;
	struct insn call;

	entry = to != insn_next(insn) ? find_hook(machine, to, time_ns, &call) : NULL;
	form.is_usual = entry || is_in_row(machine, insn, time_ns);
	if (form.is_usual && unlikely < PATCH_IMPROBABLE)
		form.unlikely = 0;
	add(ret, &form);
	ret->looked_at += HOOK_MAX;
	for (unsigned i = 0; entry && i < entry->count; i++) {
		form.also = branch(&call, call.bytes[0], entry->probes[i]);
		form.unlikely = (uint8_t)(i ? unlikely + 1 : unlikely);
		add(ret, &form);
	}
}

static void add_labels(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		       struct patch_forms *ret)
{
	struct label_targets targets;
	/* with a second copy, a label must have changed twice to be as before */
	unsigned least = machine_has_later_code(machine) ? PATCH_IMPROBABLE : 0;

	label_targets_find(machine, insn, time_ns, &targets);
	ret->looked_at += targets.looked_at;
	for (unsigned i = 0; i < targets.count; i++)
		add_label(machine, insn, targets.items[i], time_ns,
			  i < targets.back_count   ? least
			  : i < targets.dead_count ? least + 1
						   : least + PATCH_IMPROBABLE,
			  ret);
}

/* Returns whether a later copy differs. */
static bool add_later(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		      struct patch_forms *ret)
{
	struct patch_form form = { .is_known = true };
	struct insn later;
	struct bytes bytes;

	bytes = machine_later_code(machine, insn->ip, insn->length, time_ns);
	if (!bytes.size)
		return false;
	if (insn_read(bytes.data, bytes.size, insn->ip, 64, &later))
		return true;
	form.insn.site = insn->ip;
	form.insn.size = later.length;
	memcpy(form.insn.bytes, later.bytes, later.length);
	form.insn.to = later.class == INSN_JMP || later.class == INSN_CALL ? later.target
									   : insn_next(&later);
	add(ret, &form);
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

/* The function that calls all probes of a tracepoint, where that is `callee` or called by way of
 * it. */
static uint64_t iterator_of(struct machine *machine, const char *callee, uint64_t address,
			    struct patch_forms *ret)
{
	char name[128];

	if (!begins_with(callee, "__SCT__tp_func_"))
		return address;
	ret->looked_at += SYMBOLS_COST;
	(void)snprintf(name, sizeof(name), "__traceiter_%s", callee + strlen("__SCT__tp_func_"));
	return machine_symbol_address(machine, name);
}

/* A call of which kernels make another. */
static void add_calls(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		      struct patch_forms *ret)
{
	const char *callee = function_at(machine, insn->target, time_ns);
	const struct probe_table *table = machine_probes(machine);
	const struct probe_entry *entry = NULL;
	struct patch_form form = { 0 };

	if (is_ftrace_call(callee)) {
		form.insn = label(insn, insn_next(insn));
		add(ret, &form);
		return;
	}
	if (table)
		entry = probe_table_find(table, iterator_of(machine, callee, insn->target, ret));
	for (unsigned i = 0; entry && i < entry->count; i++) {
		form.insn = branch(insn, insn->bytes[0], entry->probes[i]);
		form.unlikely = i > 0;
		form.is_usual = true;
		add(ret, &form);
	}
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
