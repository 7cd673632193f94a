#include "decode/flow/patch_forms.h"

#include <string.h>

#include "decode/code/label_targets.h"
#include "decode/code/probe_table.h"

static void add(struct patch_forms *forms, const struct patch_form *form)
{
	if (forms->count < PATCH_FORMS_MAX)
		forms->items[forms->count++] = *form;
}

static bool is_call(const struct insn *insn)
{
	return insn->class == INSN_CALL && insn->length == 5;
}

/* All tracepoints of the group at once are the other way than this one is in the copy. */
static void add_groups(const struct tracepoint_table *table, const struct tracepoint_site *site,
		       struct patch_forms *ret)
{
	struct patch_form form = { .change.group = { .table = table,
						     .unit = site->entry->unit,
						     .is_on = site->copied != site->target },
				   .is_usual = true };

	for (unsigned user = 0; user < PROBE_USERS; user++) {
		form.change.group.user = (uint8_t)user;
		if (tracepoint_group_has(&form.change.group, site))
			add(ret, &form);
	}
}

/* A label of the kernel's own table changes with all others of its key. */
static void widen(struct machine *machine, const struct insn *insn, struct patch_form *form)
{
	const struct label_table *labels = machine_labels(machine);

	if (labels && label_key_find(labels, insn->ip, &form->change.key))
		form->change.insn = (struct patched_insn){ 0 };
}

static void add_label(struct machine *machine, const struct insn *insn, uint64_t to,
		      unsigned unlikely, struct patch_forms *ret)
{
	struct patch_form form = { .change.insn = patched_insn_label(insn->ip, insn->length, to),
				   .unlikely = (uint8_t)unlikely };
	const struct tracepoint_table *table = machine_tracepoints(machine);
	const struct tracepoint_site *site;

	site = table ? tracepoint_table_find(table, insn->ip) : NULL;
	if (site && site->target != to)
		site = NULL;
	form.is_usual = site != NULL;
	if (form.is_usual && unlikely < PATCH_IMPROBABLE)
		form.unlikely = 0;
	unlikely = form.unlikely;
	if (!site)
		widen(machine, insn, &form);
	add(ret, &form);
	for (unsigned i = 0; site && site->call && i < site->entry->count; i++) {
		form.change.also = patched_insn_call(site->call, site->entry->probes[i].address);
		form.unlikely = (uint8_t)(i ? unlikely + 1 : unlikely);
		add(ret, &form);
	}
	if (site)
		add_groups(table, site, ret);
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
		add_label(machine, insn, targets.items[i],
			  i < targets.back_count   ? least
			  : i < targets.dead_count ? least + 1
						   : least + PATCH_IMPROBABLE,
			  ret);
}

/* A later copy has a label the other way: so are all of its key, and it may be one of a group. */
static void add_later_label(struct machine *machine, const struct insn *insn,
			    const struct insn *later, struct patch_forms *ret)
{
	bool jumps = later->class == INSN_JMP;

	add_label(machine, insn, jumps ? later->target : insn_next(later), 0, ret);
	for (unsigned i = 0; i < ret->count; i++)
		ret->items[i].is_known = !ret->items[i].change.group.table;
}

/* Returns whether a later copy differs. */
static bool add_later(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		      struct patch_forms *ret)
{
	const struct ftrace_table *ftrace = machine_ftrace(machine);
	struct patch_form form = { .is_known = true };
	struct insn later;
	struct bytes bytes;

	bytes = machine_later_code(machine, insn->ip, insn->length, time_ns);
	if (!bytes.size)
		return false;
	if (insn_read(bytes.data, bytes.size, insn->ip, 64, &later))
		return true;
	if (label_targets_is_label(insn) && label_targets_is_label(&later) &&
	    later.length == insn->length) {
		add_later_label(machine, insn, &later, ret);
		return true;
	}
	if (ftrace && ftrace_change_make(&form.change.ftrace, ftrace, insn, &later))
		add(ret, &form);
	form.change.ftrace = (struct ftrace_change){ 0 };
	form.change.insn.site = insn->ip;
	form.change.insn.size = later.length;
	memcpy(form.change.insn.bytes, later.bytes, later.length);
	form.change.insn.to = later.class == INSN_JMP || later.class == INSN_CALL
				      ? later.target
				      : insn_next(&later);
	add(ret, &form);
	return true;
}

static bool is_code(struct machine *machine, uint64_t ip, uint64_t time_ns)
{
	struct code_view view;

	return !machine_code(machine, -1, ip, time_ns, &view);
}

/* A call of which kernels make another. */
static void add_calls(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		      struct patch_forms *ret)
{
	const struct probe_table *table = machine_probes(machine);
	const struct probe_entry *entry = NULL;
	struct patch_form form = { 0 };

	if (!is_code(machine, insn->target, time_ns)) {
		form.change.insn = patched_insn_label(insn->ip, insn->length, insn_next(insn));
		add(ret, &form);
		return;
	}
	if (table)
		entry = probe_table_find(table, insn->target);
	for (unsigned i = 0; entry && i < entry->count; i++) {
		form.change.insn = patched_insn_call(insn->ip, entry->probes[i].address);
		form.unlikely = i > 0;
		form.is_usual = true;
		add(ret, &form);
	}
}

/* Of all functions that are as this one, or of it alone. */
static void add_traced(struct patch_form *form, uint64_t site, bool is_for_all,
		       struct patch_forms *ret)
{
	for (unsigned all = 0; all <= is_for_all; all++) {
		form->change.ftrace.site = all ? 0 : site;
		form->is_usual = all;
		add(ret, form);
	}
}

/* Functions begin to be traced, or are no longer. Returns whether it is where one begins. */
static bool add_ftrace(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		       struct patch_forms *ret)
{
	const struct ftrace_table *table = machine_ftrace(machine);
	struct patch_form form = { .change.ftrace.table = table };
	bool calls = insn->class == INSN_CALL;

	if (!table || !ftrace_table_has(table, insn))
		return false;
	if (calls) {
		form.change.ftrace.copied = insn->target;
		add_traced(&form, insn->ip, true, ret);
	}
	for (unsigned i = 0; i < table->tracer_count; i++) {
		form.change.ftrace.tracer = table->tracers[i];
		if (!calls || !is_code(machine, insn->target, time_ns))
			add_traced(&form, insn->ip, table->tracers[i].is_for_all, ret);
	}
	return true;
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
	if (add_later(machine, insn, time_ns, ret) || add_ftrace(machine, insn, time_ns, ret))
		return;
	if (label_targets_is_label(insn))
		add_labels(machine, insn, time_ns, ret);
	else if (is_call(insn) && !machine_has_later_code(machine))
		add_calls(machine, insn, time_ns, ret);
}
