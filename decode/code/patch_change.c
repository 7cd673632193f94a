#include "decode/code/patch_change.h"

#include <string.h>

bool patch_change_is_group(const struct patch_change *change)
{
	return change->group.table || change->key.table ||
	       (change->ftrace.table && !change->ftrace.site);
}

static bool is_same_insn(const struct patched_insn *a, const struct patched_insn *b)
{
	return a->site == b->site && a->to == b->to && a->size == b->size &&
	       !memcmp(a->bytes, b->bytes, a->size);
}

static bool is_same_group(const struct tracepoint_group *a, const struct tracepoint_group *b)
{
	return a->table == b->table && a->unit == b->unit && a->user == b->user &&
	       a->is_on == b->is_on;
}

bool patch_change_is_same(const struct patch_change *a, const struct patch_change *b)
{
	return is_same_insn(&a->insn, &b->insn) && is_same_insn(&a->also, &b->also) &&
	       is_same_group(&a->group, &b->group) && label_key_is_same(&a->key, &b->key) &&
	       ftrace_change_is_same(&a->ftrace, &b->ftrace);
}

/* The site of a group; NULL: it has none there. */
static const struct tracepoint_site *site_of(const struct tracepoint_group *group, uint64_t ip)
{
	const struct tracepoint_site *site = tracepoint_table_find(group->table, ip);

	return site && tracepoint_group_has(group, site) ? site : NULL;
}

bool patch_change_has(const struct patch_change *change, uint64_t site)
{
	if (change->group.table)
		return site_of(&change->group, site);
	if (change->key.table)
		return label_key_has(&change->key, site);
	if (change->ftrace.table)
		return ftrace_change_has(&change->ftrace, site);
	return change->insn.site == site || change->also.site == site;
}

bool patch_change_insn(const struct patch_change *change, uint64_t site, struct patched_insn *ret)
{
	if (change->group.table)
		return tracepoint_group_insn(&change->group, site_of(&change->group, site), ret);
	if (change->key.table)
		return label_key_insn(&change->key, site, ret);
	if (change->ftrace.table)
		return ftrace_change_insn(&change->ftrace, site, ret);
	*ret = change->insn.site == site ? change->insn : change->also;
	return ret->to;
}

static bool visit_group(const struct tracepoint_group *group,
			bool (*visit)(void *context, uint64_t site), void *context)
{
	const struct tracepoint_table *table = group->table;

	for (size_t i = 0; i < table->count; i++)
		if (tracepoint_group_has(group, &table->items[i]) &&
		    !visit(context, table->items[i].ip))
			return false;
	return true;
}

static bool visit_key(const struct label_key *key, bool (*visit)(void *context, uint64_t site),
		      void *context)
{
	for (uint32_t at = key->first; at != LABEL_KEY_END; at = label_key_next(key, at))
		if (!visit(context, key->table->items[at].site))
			return false;
	return true;
}

static bool visit_traced(const struct ftrace_change *change,
			 bool (*visit)(void *context, uint64_t site), void *context)
{
	const struct ftrace_table *table = change->table;

	if ((change->tracer.call && !visit(context, change->tracer.call)) ||
	    (change->tracer.jump && !visit(context, change->tracer.jump)))
		return false;
	for (unsigned i = 0; i < table->static_call_count && change->tracer.is_graph; i++)
		if (!visit(context, table->static_calls[i].site))
			return false;
	if (change->site)
		return visit(context, change->site);
	for (size_t i = 0; i < table->count; i++)
		if (table->items[i].copied == change->copied && !visit(context, table->items[i].ip))
			return false;
	return true;
}

bool patch_change_visit(const struct patch_change *change,
			bool (*visit)(void *context, uint64_t site), void *context)
{
	if (change->group.table)
		return visit_group(&change->group, visit, context);
	if (change->key.table)
		return visit_key(&change->key, visit, context);
	if (change->ftrace.table)
		return visit_traced(&change->ftrace, visit, context);
	return visit(context, change->insn.site) &&
	       (!change->also.site || visit(context, change->also.site));
}

struct patch_change patch_change_undo(const struct patch_change *group)
{
	struct patch_change undone = { .group = group->group,
				       .key = group->key,
				       .ftrace = group->ftrace };

	if (undone.group.table)
		undone.group.is_on = !undone.group.is_on;
	if (undone.key.table)
		undone.key.is_as_copied = true;
	undone.ftrace.is_as_copied = undone.ftrace.table != NULL;
	return undone;
}
