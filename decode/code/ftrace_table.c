#include "decode/code/ftrace_table.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/code/machine_parts.h"

enum {
	SITE_SIZE = 5,
	JUMP_SIZE = 2,
	ENDBR_SIZE = 4,
	SITES_MAX = 1 << 17, /* a distribution's kernel has some 50000 */
	CALLER_BYTES = 512,  /* in which a caller calls the tracer, and ends; the other follows */
	STATIC_CALLER_BYTES = 1 << 12, /* more than functions have that make static calls */
};

/* What begins a function, or a trampoline. */
enum { CALLER, REGS_CALLER, CALLERS };

static const char *const caller_names[CALLERS] = { "ftrace_caller", "ftrace_regs_caller" };

static const struct {
	const char *name;
	int caller;
	bool is_for_all, is_graph, is_shared; /* by tracers: there is no trampoline of its own */
} tracer_names[] = {
	{ "function_trace_call", CALLER, true },
	{ "ftrace_graph_func", CALLER, true, .is_graph = true },
	{ "arch_ftrace_ops_list_func", CALLER, true, .is_shared = true },
	{ "arch_ftrace_ops_list_func", REGS_CALLER, true, .is_shared = true },
	{ "kprobe_ftrace_handler", REGS_CALLER, false },
	{ "klp_ftrace_handler", CALLER, false },
	{ "fprobe_ftrace_entry", CALLER, false },
	{ "fprobe_handler", REGS_CALLER, false },
	{ "ftrace_ops_assist_func", CALLER, false },
	{ "ftrace_ops_assist_func", REGS_CALLER, false },
};

/* Static calls of the graph: what they lead to without its tracer, and with it. */
static const struct {
	const char *copied, *traced;
} static_calls[] = {
	{ "ftrace_graph_entry_stub", "trace_graph_entry" },
	{ "ftrace_graph_ret_stub", "trace_graph_return" },
};

/* The functions that make them. */
static const char *const static_callers[] = { "function_graph_enter", "function_graph_enter_regs",
					      "ftrace_return_to_handler" };

static bool read_insn(const struct machine *machine, uint64_t ip, struct insn *ret)
{
	size_t left = 0;
	const uint8_t *data = image_find(&machine->image, ip, &left);

	return data && !insn_read(data, left, ip, 64, ret);
}

static bool is_nop(const struct insn *insn)
{
	static const uint8_t nop[SITE_SIZE] = { 0x0f, 0x1f, 0x44, 0, 0 };

	return insn->length == SITE_SIZE && !memcmp(insn->bytes, nop, SITE_SIZE);
}

static bool is_call(const struct insn *insn)
{
	return insn->class == INSN_CALL && insn->length == SITE_SIZE;
}

/* An ENDBR, or what one becomes that nothing branches to indirectly (asm/ibt.h). */
static bool is_endbr(const struct insn *insn)
{
	static const uint8_t forms[][ENDBR_SIZE] = { { 0xf3, 0x0f, 0x1e, 0xfa },
						     { 0x66, 0x0f, 0x1f, 0x00 },
						     { 0x0f, 0x1f, 0x40, 0xd6 } };

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (insn->length == ENDBR_SIZE && !memcmp(insn->bytes, forms[i], ENDBR_SIZE))
			return true;
	return false;
}

/* Functions call what is in no copy where they begin, or where no function begins, or what
 * trampolines are called in one. */
static bool is_trampoline(const struct machine *machine, uint64_t ip)
{
	const struct symbol *symbol = symbols_find(&machine->symbols, ip);
	size_t left;

	if (!image_find(&machine->image, ip, &left))
		return ip >> 63;
	return !symbol || symbol->start != ip || !strcmp(symbol->name, caller_names[CALLER]) ||
	       !strcmp(symbol->name, caller_names[REGS_CALLER]) ||
	       !strcmp(symbol->name, "ftrace_trampoline") || !strcmp(symbol->name, "__fentry__");
}

/* Add the site of a function, if it has one. False when memory is out. */
static bool add_site(const struct machine *machine, uint64_t ip, struct ftrace_table *table)
{
	struct ftrace_site site = { .ip = ip };
	struct insn insn;

	if (read_insn(machine, ip, &insn) && is_endbr(&insn))
		site.ip += ENDBR_SIZE;
	if (!read_insn(machine, site.ip, &insn) || label_table_find(&machine->labels, site.ip))
		return true;
	if (is_call(&insn) && is_trampoline(machine, insn.target))
		site.copied = insn.target;
	else if (!is_nop(&insn))
		return true;
	return table->count == SITES_MAX || vec_push(table, site);
}

static uint64_t find_call(const struct machine *machine, uint64_t caller)
{
	struct insn insn;

	for (uint64_t ip = caller;
	     ip < caller + CALLER_BYTES && read_insn(machine, ip, &insn) && insn.class != INSN_RET;
	     ip = insn_next(&insn))
		if (is_call(&insn))
			return ip;
	return 0;
}

/* The jump of ftrace_regs_caller to direct calls. Others than it have a NOP there, as they have no
 * such calls (create_trampoline() of arch/x86/kernel/ftrace.c); 0: there is none. */
static uint64_t find_jump(const struct machine *machine)
{
	uint64_t ip = symbols_address(&machine->symbols, "ftrace_regs_caller_jmp");
	struct insn insn;

	if (!ip || !read_insn(machine, ip, &insn) || insn.class != INSN_JCC ||
	    insn.length != JUMP_SIZE)
		return 0;
	return ip;
}

/* Where code is that has another name than "ftrace_...". */
static uint64_t end_of_callers(const struct symbols *symbols, uint64_t last)
{
	const struct symbol *symbol = symbols_find(symbols, last);
	const struct symbol *end = symbols->items + symbols->count;

	while (symbol && symbol < end && !strncmp(symbol->name, "ftrace_", 7))
		symbol++;
	return symbol && symbol < end && symbol->start < last + CALLER_BYTES ? symbol->start
									     : last + CALLER_BYTES;
}

static void read_tracers(const struct machine *machine, struct ftrace_table *ret)
{
	const struct symbols *symbols = &machine->symbols;
	uint64_t callers[CALLERS], calls[CALLERS], jump = find_jump(machine);

	for (int i = 0; i < CALLERS; i++) {
		callers[i] = symbols_address(symbols, caller_names[i]);
		calls[i] = callers[i] ? find_call(machine, callers[i]) : 0;
		if (!calls[i])
			return;
	}
	if (callers[REGS_CALLER] - callers[CALLER] > CALLER_BYTES)
		return;
	ret->from = callers[CALLER];
	ret->to = end_of_callers(symbols, callers[REGS_CALLER]);
	for (size_t i = 0; i < sizeof(tracer_names) / sizeof(*tracer_names); i++) {
		int caller = tracer_names[i].caller;
		struct ftrace_tracer tracer = { .caller = callers[caller],
						.call = calls[caller],
						.is_for_all = tracer_names[i].is_for_all,
						.is_graph = tracer_names[i].is_graph };

		if (caller == REGS_CALLER && !tracer_names[i].is_shared)
			tracer.jump = jump;
		tracer.address = symbols_address(symbols, tracer_names[i].name);
		if (tracer.address)
			ret->tracers[ret->tracer_count++] = tracer;
	}
}

/* Make the static calls of a function that lead to `copied` lead to `traced`. */
static void add_static_calls(const struct machine *machine, const struct symbol *function,
			     uint64_t copied, uint64_t traced, struct ftrace_table *ret)
{
	struct insn insn;

	for (uint64_t ip = function->start;
	     ip < function->end && ip < function->start + STATIC_CALLER_BYTES &&
	     read_insn(machine, ip, &insn);
	     ip = insn_next(&insn))
		if (is_call(&insn) && insn.target == copied &&
		    ret->static_call_count < FTRACE_STATIC_CALLS_MAX)
			ret->static_calls[ret->static_call_count++] = patched_insn_call(ip, traced);
}

static void read_static_calls(const struct machine *machine, struct ftrace_table *ret)
{
	const struct symbols *symbols = &machine->symbols;

	for (size_t i = 0; i < sizeof(static_calls) / sizeof(*static_calls); i++) {
		uint64_t copied = symbols_address(symbols, static_calls[i].copied);
		uint64_t traced = symbols_address(symbols, static_calls[i].traced);

		for (size_t k = 0; k < sizeof(static_callers) / sizeof(*static_callers); k++) {
			const struct symbol *function =
				symbols_find(symbols, symbols_address(symbols, static_callers[k]));

			if (copied && traced && function)
				add_static_calls(machine, function, copied, traced, ret);
		}
	}
}

SORT_BY(compare, struct ftrace_site, ip)

int ftrace_table_read(struct machine *machine, struct ftrace_table *ret)
{
	const struct symbols *symbols = &machine->symbols;

	read_tracers(machine, ret);
	read_static_calls(machine, ret);
	for (size_t i = 0; i < symbols->count; i++)
		if (symbols->items[i].start >> 63 &&
		    !add_site(machine, symbols->items[i].start, ret))
			return -PTVM_NO_MEMORY;
	sort_vec(ret, compare);
	return 0;
}

const struct ftrace_site *ftrace_table_find(const struct ftrace_table *table, uint64_t ip)
{
	size_t at = search_sorted(table->count, i, table->items[i].ip < ip);

	return at < table->count && table->items[at].ip == ip ? &table->items[at] : NULL;
}

const struct patched_insn *ftrace_table_static_call(const struct ftrace_table *table, uint64_t ip)
{
	for (unsigned i = 0; i < table->static_call_count; i++)
		if (table->static_calls[i].site == ip)
			return &table->static_calls[i];
	return NULL;
}

bool ftrace_table_has(const struct ftrace_table *table, const struct insn *insn)
{
	const struct ftrace_site *site;

	if (!is_nop(insn) && !is_call(insn))
		return false;
	site = ftrace_table_find(table, insn->ip);
	return site && site->copied == (is_call(insn) ? insn->target : 0);
}

bool ftrace_change_make(struct ftrace_change *change, const struct ftrace_table *table,
			const struct insn *copied, const struct insn *now)
{
	if (!ftrace_table_has(table, copied) || (!is_nop(now) && !is_call(now)))
		return false;
	*change = (struct ftrace_change){ .table = table };
	change->copied = is_call(copied) ? copied->target : 0;
	change->tracer.caller = is_call(now) ? now->target : 0;
	return true;
}

/* What a change makes of a static call; NULL: it is none, or the change is not about it. */
static const struct patched_insn *static_call(const struct ftrace_change *change, uint64_t ip)
{
	return change->tracer.is_graph ? ftrace_table_static_call(change->table, ip) : NULL;
}

bool ftrace_change_has(const struct ftrace_change *change, uint64_t ip)
{
	const struct ftrace_site *site;

	if (change->tracer.call == ip || change->tracer.jump == ip || static_call(change, ip))
		return true;
	if (change->site)
		return change->site == ip;
	site = ftrace_table_find(change->table, ip);
	return site && site->copied == change->copied;
}

bool ftrace_change_insn(const struct ftrace_change *change, uint64_t ip, struct patched_insn *ret)
{
	const struct ftrace_tracer *tracer = &change->tracer;
	const struct patched_insn *call = static_call(change, ip);

	if (change->is_as_copied)
		return false;
	if (call)
		*ret = *call;
	else if (ip == tracer->jump)
		*ret = patched_insn_label(ip, JUMP_SIZE, ip + JUMP_SIZE);
	else if (!tracer->caller)
		*ret = patched_insn_label(ip, SITE_SIZE, ip + SITE_SIZE);
	else
		*ret = patched_insn_call(ip, ip == tracer->call ? tracer->address : tracer->caller);
	return true;
}

bool ftrace_change_is_same(const struct ftrace_change *a, const struct ftrace_change *b)
{
	return a->table == b->table && a->site == b->site && a->copied == b->copied &&
	       a->tracer.address == b->tracer.address && a->tracer.caller == b->tracer.caller &&
	       a->tracer.call == b->tracer.call && a->is_as_copied == b->is_as_copied;
}

void ftrace_table_free(struct ftrace_table *table)
{
	vec_free(table);
}
