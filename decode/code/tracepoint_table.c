/* A call is found by its bytes, and the labels of its function then by where they lead: the code
 * there calls the probes before it goes elsewhere (include/linux/tracepoint.h). Labels in a row
 * that lead to the same place ask whether one of several tracepoints is on, as in
 * check_schedstat_required() (kernel/sched/fair.c); they are taken for those of the unit that is
 * nearest in the code. */
#include "decode/code/tracepoint_table.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/code/label_targets.h"
#include "decode/code/machine_parts.h"

enum {
	CALL_SIZE = 5,
	HOOK_MAX = 24, /* instructions from where a label leads to the call of probes */
	ROW = 3,       /* labels, at least, */
	ROW_BYTES = 2, /* of so many bytes each */
	BEHIND = 48,   /* bytes behind the call that belong to it */
	SITES_MAX = 1 << 16,
};

struct reader {
	struct machine *machine;
	const struct probe_table *probes;
	struct tracepoint_table *table;
	uint64_t from, to; /* of what tracepoints call */
	struct label_scan scan;
};

static bool read_insn(struct reader *reader, uint64_t ip, struct insn *ret)
{
	size_t left = 0;
	const uint8_t *data = image_find(&reader->machine->image, ip, &left);

	return data && !insn_read(data, left, ip, 64, ret);
}

static bool add(struct reader *reader, const struct tracepoint_site *site)
{
	return reader->table->count < SITES_MAX && vec_push(reader->table, *site);
}

/* Where a tracepoint is on, the code behind its label calls the probes. Returns the call's address,
 * 0: it does not. */
static uint64_t find_hook(struct reader *reader, uint64_t ip, const struct probe_entry **ret)
{
	struct insn insn;

	for (unsigned i = 0; i < HOOK_MAX && read_insn(reader, ip, &insn); i++) {
		if (insn.class == INSN_JMP || insn.class == INSN_RET)
			return 0;
		*ret = insn.class == INSN_CALL ? probe_table_find(reader->probes, insn.target)
					       : NULL;
		if (*ret)
			return ip;
		ip = insn_next(&insn);
	}
	return 0;
}

/* How good a label fits that may lead to a call. */
enum { FITS_EXACTLY, FITS_NEARLY, SKIPS_A_JUMP, MAY_FIT, FITS_NOT };

static uint8_t judge(struct reader *reader, const struct tracepoint_site *label,
		     const struct label_targets *targets, unsigned index)
{
	struct insn insn;

	/* as the one that preempts */
	if (!label->call || (label->ip > label->target && label->ip < label->call + BEHIND))
		return FITS_NOT;
	if (index < targets->back_count)
		return index < targets->exact_count ? FITS_EXACTLY : FITS_NEARLY;
	return read_insn(reader, label->ip + label->size, &insn) && insn.class == INSN_JMP &&
			       insn_next(&insn) == label->target
		       ? SKIPS_A_JUMP
		       : MAY_FIT;
}

/* Whether those behind a label lead where it does. */
static bool is_row(struct reader *reader, const struct insn *insn, uint64_t target)
{
	struct label_targets targets;
	struct insn next = *insn;

	for (unsigned i = 1; i < ROW; i++) {
		if (!read_insn(reader, insn_next(&next), &next) || next.length != ROW_BYTES ||
		    !label_targets_is_label(&next))
			return false;
		label_scan_find(&reader->scan, &next, &targets);
		if (!targets.dead_count || targets.items[0] != target)
			return false;
	}
	return true;
}

static bool add_label(struct reader *reader, const struct insn *insn)
{
	struct tracepoint_site best = { .unlikely = FITS_NOT };
	bool jumps = insn->class == INSN_JMP;
	struct label_targets targets;

	label_scan_find(&reader->scan, insn, &targets);
	for (unsigned i = 0; i < targets.dead_count; i++) {
		struct tracepoint_site site = { .ip = insn->ip, .size = insn->length };

		site.copied = jumps ? insn->target : insn_next(insn);
		site.target = jumps ? insn->target : targets.items[i];
		site.call = find_hook(reader, site.target, &site.entry);
		site.unlikely = judge(reader, &site, &targets, i);
		if (site.unlikely < best.unlikely)
			best = site;
	}
	if (best.unlikely >= MAY_FIT && !jumps && insn->length == ROW_BYTES && targets.dead_count &&
	    is_row(reader, insn, targets.items[0]))
		best = (struct tracepoint_site){ .ip = insn->ip,
						 .size = insn->length,
						 .copied = insn_next(insn),
						 .target = targets.items[0] };
	return best.unlikely == FITS_NOT || add(reader, &best);
}

static bool add_labels(struct reader *reader, const struct symbol *function)
{
	struct insn insn;

	for (uint64_t ip = function->start; ip < function->end && read_insn(reader, ip, &insn);
	     ip = insn_next(&insn))
		if (label_targets_is_label(&insn) && !add_label(reader, &insn))
			return false;
	return true;
}

/* What a call at `data` has as its target, if that is one. */
static uint64_t call_target(const uint8_t *data, uint64_t ip)
{
	return ip + CALL_SIZE + (uint64_t)(int64_t)(int32_t)load_le(data + 1, 4);
}

/* Whether NOPs are in a row. */
static bool has_row(const uint8_t *data, size_t size)
{
	static const uint8_t row[ROW * ROW_BYTES] = { 0x66, 0x90, 0x66, 0x90, 0x66, 0x90 };

	return memmem(data, size, row, sizeof(row));
}

/* Add the calls in a function; `ret`: whether labels are to be looked for. */
static bool add_calls(struct reader *reader, const struct symbol *function, bool *ret)
{
	size_t left = 0;
	const uint8_t *data = image_find(&reader->machine->image, function->start, &left), *at;
	size_t size = function->end - function->start;

	if (!data)
		return true;
	size = left < size ? left : size;
	*ret = has_row(data, size);
	for (at = data; size >= CALL_SIZE &&
			(at = memchr(at, 0xe8, size - CALL_SIZE + 1 - (size_t)(at - data)));
	     at++) {
		uint64_t ip = function->start + (uint64_t)(at - data), target = call_target(at, ip);
		struct tracepoint_site site = { .ip = ip, .size = CALL_SIZE, .copied = target };

		if (target < reader->from || target > reader->to)
			continue;
		site.entry = probe_table_find(reader->probes, target);
		if (site.entry && !add(reader, &site))
			return false;
		*ret |= site.entry != NULL;
	}
	return true;
}

/* Of a function's part that lies elsewhere (.cold) the labels are in the function. */
static const struct symbol *whole(struct reader *reader, const struct symbol *part)
{
	const struct symbols *symbols = &reader->machine->symbols;
	size_t length = strlen(part->name), suffix = strlen(".cold");

	if (length <= suffix || strcmp(part->name + length - suffix, ".cold"))
		return part;
	for (size_t i = 0; i < symbols->count; i++)
		if (!strncmp(symbols->items[i].name, part->name, length - suffix) &&
		    !symbols->items[i].name[length - suffix])
			return &symbols->items[i];
	return part;
}

SORT_BY(compare, struct tracepoint_site, ip)

/* Which of two labels leads to a call. */
SORT_BY_TWO(compare_labels, struct tracepoint_site, call, unlikely)

/* Of the labels that may lead to the same call, the likeliest do. */
static void choose(struct tracepoint_table *table)
{
	size_t first = 0;

	sort_vec(table, compare_labels);
	for (size_t i = 0; i < table->count; i++) {
		struct tracepoint_site *site = &table->items[i];

		if (site->call != table->items[first].call)
			first = i;
		site->is_doubtful = site->call && (site->unlikely > table->items[first].unlikely ||
						   site->unlikely == MAY_FIT);
	}
}

/* A function may have been gone through for itself and for its other part. */
static void sort(struct tracepoint_table *table)
{
	size_t count = 0;

	sort_vec(table, compare);
	for (size_t i = 0; i < table->count; i++)
		if (!count || table->items[i].ip != table->items[count - 1].ip)
			table->items[count++] = table->items[i];
	table->count = count;
}

static const struct tracepoint_site *nearest(const struct tracepoint_table *table, size_t at)
{
	const struct tracepoint_site *items = table->items;
	size_t before = at, behind = at;

	while (before > 0 && !items[before].entry)
		before--;
	while (behind + 1 < table->count && !items[behind].entry)
		behind++;
	if (!items[before].entry)
		return &items[behind];
	if (!items[behind].entry)
		return &items[before];
	return items[at].ip - items[before].ip < items[behind].ip - items[at].ip ? &items[before]
										 : &items[behind];
}

/* Labels in a row. */
static void settle_rows(struct tracepoint_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		if (!table->items[i].entry)
			table->items[i].entry = nearest(table, i)->entry;
	if (table->count && !table->items[0].entry)
		table->count = 0;
}

int tracepoint_table_read(struct machine *machine, const struct probe_table *probes,
			  struct tracepoint_table *ret)
{
	const struct symbols *symbols = &machine->symbols;
	struct reader reader;

	*ret = (struct tracepoint_table){ 0 };
	if (!probes->count)
		return 0;
	reader.machine = machine;
	reader.probes = probes;
	reader.table = ret;
	label_scan_init(&reader.scan, machine, 0);
	reader.from = probes->items[0].callee;
	reader.to = probes->items[probes->count - 1].callee;
	for (size_t i = 0; i < symbols->count; i++) {
		bool has_labels = false;

		if (symbols->items[i].module)
			continue;
		if (!add_calls(&reader, &symbols->items[i], &has_labels) ||
		    (has_labels && !add_labels(&reader, whole(&reader, &symbols->items[i]))))
			return -PTVM_NO_MEMORY;
	}
	choose(ret);
	sort(ret);
	settle_rows(ret);
	return 0;
}

const struct tracepoint_site *tracepoint_table_find(const struct tracepoint_table *table,
						    uint64_t ip)
{
	struct tracepoint_site key = { .ip = ip };

	return table->count ? bsearch(&key, table->items, table->count, sizeof(key), compare)
			    : NULL;
}

bool tracepoint_group_has(const struct tracepoint_group *group, const struct tracepoint_site *site)
{
	bool is_in_row = site->target && !site->call;

	return !site->is_doubtful && site->entry->unit == group->unit &&
	       (is_in_row ? group->user < PROBE_USERS_OF_CLASSES
			  : probe_entry_of(site->entry, group->user) != 0);
}

bool tracepoint_group_insn(const struct tracepoint_group *group, const struct tracepoint_site *site,
			   struct patched_insn *ret)
{
	uint64_t to = site->ip + site->size;

	if (!site->target) {
		to = probe_entry_of(site->entry, group->user);
		if (!group->is_on || to == site->entry->iterator)
			return false;
		*ret = patched_insn_call(site->ip, to);
		return true;
	}
	if (group->is_on)
		to = site->target;
	if (to == site->copied)
		return false;
	*ret = patched_insn_label(site->ip, site->size, to);
	return true;
}

void tracepoint_table_free(struct tracepoint_table *table)
{
	vec_free(table);
}
