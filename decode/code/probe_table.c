/* The macros of include/trace/events make of each event a function that calls all of its probes,
 * and of each class of events one probe for each of those that use it. All of one file come out
 * together, the events before the classes, and mostly in the order in which the file has them.
 */
#include "decode/code/probe_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"

enum {
	CLASSES_KEPT = 2,      /* of those that may be an event's */
	UNIT_PARTS_MAX = 1024, /* events and classes of one file: Linux 7.3 has up to 399 */
	NAME_LENGTH = 1024,    /* more than names have in common */
};

/* Whose probes are named for a class. */
static const char *const users[] = {
	[PROBE_FTRACE] = "trace_event_raw_event_",
	[PROBE_PERF] = "perf_trace_",
	[PROBE_BPF] = "__bpf_trace_",
};

enum { USERS = PROBE_USERS_OF_CLASSES };

/* Probes that are not. */
static const struct {
	const char *event, *probe;
	enum probe_user user;
} others[] = {
	/* kernel/trace/trace_syscalls.c */
	{ "sys_enter", "ftrace_syscall_enter", PROBE_FTRACE_SYSCALLS },
	{ "sys_exit", "ftrace_syscall_exit", PROBE_FTRACE_SYSCALLS },
	{ "sys_enter", "perf_syscall_enter", PROBE_PERF_SYSCALLS },
	{ "sys_exit", "perf_syscall_exit", PROBE_PERF_SYSCALLS },
	/* kernel/trace/trace_sched_switch.c: in use with any tracer */
	{ "sched_switch", "probe_sched_switch", PROBE_COMMANDS },
	{ "sched_wakeup", "probe_sched_wakeup", PROBE_COMMANDS },
	{ "sched_wakeup_new", "probe_sched_wakeup", PROBE_COMMANDS },
	/* kernel/trace/fgraph.c */
	{ "sched_switch", "ftrace_graph_probe_sched_switch", PROBE_GRAPH },
};

enum { OTHERS = sizeof(others) / sizeof(*others) };

struct part {
	const char *name; /* of the event or class */
	uint64_t address;
	int user;            /* of the class; -1: an event */
	uint64_t own[USERS]; /* the classes that have its name, 0 none */
	bool is_own;         /* there is an event of its name */
};

struct reader {
	struct {
		struct part *items; /* by address */
		size_t count, room;
	} parts;
	struct {
		struct part *items; /* by name */
		size_t count, room;
	} trampolines;
	uint64_t others[OTHERS];
	struct probe_table *table;
};

/* What comes behind a prefix; NULL: it has another, or is a part of a function. */
static const char *behind(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);

	return !strncmp(name, prefix, length) && !strchr(name + length, '.') ? name + length : NULL;
}

static bool add_part(struct reader *reader, const struct symbol *symbol)
{
	struct part part = { .address = symbol->start, .user = -1 };

	part.name = behind(symbol->name, "__SCT__tp_func_");
	if (part.name)
		return vec_push(&reader->trampolines, part);
	part.name = behind(symbol->name, "__traceiter_");
	for (int user = 0; user < USERS && !part.name; user++) {
		part.name = behind(symbol->name, users[user]);
		if (part.name)
			part.user = user;
	}
	return !part.name || vec_push(&reader->parts, part);
}

static int collect(struct reader *reader, const struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->items[i];

		if (!add_part(reader, symbol))
			return -PTVM_NO_MEMORY;
		for (unsigned k = 0; k < OTHERS; k++)
			if (!reader->others[k] && !strcmp(symbol->name, others[k].probe))
				reader->others[k] = symbol->start;
	}
	return 0;
}

static void add_probe(struct probe_entry *entry, uint64_t probe, enum probe_user user)
{
	if (!probe || entry->count == PROBES_MAX)
		return;
	entry->probes[entry->count].address = probe;
	entry->probes[entry->count++].user = user;
}

/* The parts of one file: items [from, to), of which those below `classes` are events. */
struct unit {
	struct part *items;
	size_t from, classes, to;
	int orderly; /* whose classes are in the order of the events; -1: nobody's are */
};

/* Parts that have one name know of each other. */
static void join(struct part **parts, size_t count)
{
	uint64_t own[USERS] = { 0 };
	bool is_own = false;

	for (size_t i = 0; i < count; i++) {
		if (parts[i]->user < 0)
			is_own = true;
		else
			own[parts[i]->user] = parts[i]->address;
	}
	for (size_t i = 0; i < count; i++) {
		memcpy(parts[i]->own, own, sizeof(own));
		parts[i]->is_own = is_own;
	}
}

static int compare_names(const void *a, const void *b)
{
	const struct part *left = *(struct part *const *)a, *right = *(struct part *const *)b;
	int order = strcmp(left->name, right->name);

	return order ? order : sort_order(left->address, right->address);
}

static void find_own(struct unit *unit)
{
	struct part *parts[UNIT_PARTS_MAX];
	size_t count = unit->to - unit->from, from = 0;

	for (size_t i = 0; i < count; i++)
		parts[i] = &unit->items[unit->from + i];
	qsort(parts, count, sizeof(*parts), compare_names);
	for (size_t i = 1; i <= count; i++) {
		if (i < count && !strcmp(parts[i]->name, parts[from]->name))
			continue;
		join(parts + from, i - from);
		from = i;
	}
}

static bool is_orderly(const struct unit *unit, int user)
{
	uint64_t last = 0;

	for (size_t i = unit->from; i < unit->classes; i++) {
		uint64_t own = unit->items[i].own[user];

		if (own && own < last)
			return false;
		last = own ? own : last;
	}
	return true;
}

/* A compiler may put the classes of one user elsewhere than those of others. */
static void find_orderly(struct unit *unit)
{
	unit->orderly = 0;
	while (unit->orderly < USERS && !is_orderly(unit, unit->orderly))
		unit->orderly++;
	if (unit->orderly == USERS)
		unit->orderly = -1;
}

/* How many characters two names have in common where they begin and where they end. */
static size_t common_length(const char *a, const char *b)
{
	size_t left = strlen(a), right = strlen(b), begin = 0, end = 0;

	while (begin < left && begin < right && a[begin] == b[begin])
		begin++;
	left -= begin;
	right -= begin;
	while (end < left && end < right && a[begin + left - end - 1] == b[begin + right - end - 1])
		end++;
	return begin + end;
}

/* A class that may be an event's, and how well it fits. */
struct choice {
	uint64_t address;
	size_t fit;
};

static void keep(struct choice *choices, struct choice choice)
{
	for (unsigned i = 0; i < CLASSES_KEPT; i++) {
		struct choice other = choices[i];

		if (other.fit >= choice.fit)
			continue;
		choices[i] = choice;
		choice = other;
	}
}

/* Where the class of the next event is that has one of its own, in one direction. */
static uint64_t border(const struct unit *unit, size_t event, bool is_ahead, int user)
{
	for (size_t i = event; is_ahead ? ++i < unit->classes : i-- > unit->from;)
		if (unit->items[i].own[user])
			return unit->items[i].own[user];
	return is_ahead ? UINT64_MAX : 0;
}

/* The event is of a class with another name: the likeliest are those between the classes of the
 * events next to it, then those whose names are alike. */
static void add_shared(const struct unit *unit, size_t event, int user, struct probe_entry *ret)
{
	const int by = unit->orderly < 0 ? user : unit->orderly;
	uint64_t from = border(unit, event, false, by), to = border(unit, event, true, by);
	struct choice choices[CLASSES_KEPT] = { { 0 } };

	for (size_t i = unit->classes; i < unit->to; i++) {
		const struct part *class = &unit->items[i];
		bool is_between = class->own[by] > from && class->own[by] < to;
		size_t alike = common_length(class->name, unit->items[event].name);

		if (class->user == user && !class->is_own)
			keep(choices,
			     (struct choice){ class->address,
					      1 + alike + (is_between ? NAME_LENGTH : 0) });
	}
	for (unsigned i = 0; i < CLASSES_KEPT; i++)
		add_probe(ret, choices[i].address, (enum probe_user)user);
}

/* A tracepoint that is no event has a class of its name for BPF alone. */
static bool is_event(const struct part *part)
{
	return part->own[PROBE_FTRACE] || !part->own[PROBE_BPF];
}

static int compare_trampolines(const void *a, const void *b)
{
	return strcmp(((const struct part *)a)->name, ((const struct part *)b)->name);
}

/* The same where code calls the trampoline of static calls, and that jumps there. */
static bool add_trampoline(struct reader *reader, const char *name, struct probe_entry entry)
{
	const struct part key = { .name = name }, *part = NULL;

	if (reader->trampolines.count)
		part = bsearch(&key, reader->trampolines.items, reader->trampolines.count,
			       sizeof(key), compare_trampolines);
	if (!part)
		return true;
	entry.callee = part->address;
	return vec_push(reader->table, entry);
}

static bool add_entry(struct reader *reader, const struct unit *unit, size_t event)
{
	const struct part *part = &unit->items[event];
	struct probe_entry entry = { .callee = part->address,
				     .iterator = part->address,
				     .unit = (uint32_t)unit->from + 1 };

	for (int user = 0; user < USERS; user++) {
		if (part->own[user])
			add_probe(&entry, part->own[user], (enum probe_user)user);
		else if (is_event(part))
			add_shared(unit, event, user, &entry);
		for (unsigned i = 0; !user && i < OTHERS; i++)
			if (!strcmp(others[i].event, part->name))
				add_probe(&entry, reader->others[i], others[i].user);
	}
	return !entry.count ||
	       (vec_push(reader->table, entry) && add_trampoline(reader, part->name, entry));
}

/* The next file's parts. False: there are no more. */
static bool next_unit(struct reader *reader, struct unit *unit)
{
	*unit = (struct unit){ .items = reader->parts.items, .from = unit->to };
	unit->classes = unit->from;
	while (unit->classes < reader->parts.count && unit->items[unit->classes].user < 0)
		unit->classes++;
	unit->to = unit->classes;
	while (unit->to < reader->parts.count && unit->items[unit->to].user >= 0)
		unit->to++;
	return unit->from < reader->parts.count;
}

SORT_BY(compare_entries, struct probe_entry, callee)

static int read_units(struct reader *reader)
{
	struct unit unit = { .to = 0 };

	while (next_unit(reader, &unit)) {
		if (unit.to - unit.from > UNIT_PARTS_MAX)
			continue;
		find_own(&unit);
		find_orderly(&unit);
		for (size_t i = unit.from; i < unit.classes; i++)
			if (!add_entry(reader, &unit, i))
				return -PTVM_NO_MEMORY;
	}
	return 0;
}

int probe_table_read(const struct symbols *symbols, struct probe_table *ret)
{
	struct reader reader = { .table = ret };
	int r;

	*ret = (struct probe_table){ 0 };
	r = collect(&reader, symbols);
	sort_vec(&reader.trampolines, compare_trampolines);
	if (!r)
		r = read_units(&reader);
	vec_free(&reader.parts);
	vec_free(&reader.trampolines);
	sort_vec(ret, compare_entries);
	return r;
}

const struct probe_entry *probe_table_find(const struct probe_table *table, uint64_t callee)
{
	struct probe_entry key = { .callee = callee };

	return table->count
		       ? bsearch(&key, table->items, table->count, sizeof(key), compare_entries)
		       : NULL;
}

uint64_t probe_entry_of(const struct probe_entry *entry, enum probe_user user)
{
	uint64_t first = 0;
	bool is_shared = false;

	for (unsigned i = 0; i < entry->count; i++) {
		is_shared |= user == PROBE_FTRACE && entry->probes[i].user == PROBE_COMMANDS;
		if (!first && entry->probes[i].user == user)
			first = entry->probes[i].address;
	}
	return first && is_shared ? entry->iterator : first;
}

void probe_table_free(struct probe_table *table)
{
	vec_free(table);
}
