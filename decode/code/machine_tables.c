/* What is found in a kernel's code and symbols when somebody first asks for it. */
#include "decode/code/machine_parts.h"

static void load_labels(struct machine *machine)
{
	const struct symbols *symbols = &machine->symbols;
	uint64_t start = symbols_address(symbols, "__start___jump_table");
	uint64_t end = symbols_address(symbols, "__stop___jump_table");
	uint64_t text = symbols_address(symbols, "_stext");
	uint64_t text_end = symbols_address(symbols, "_etext");
	size_t left = 0;
	const uint8_t *data = start ? image_find(&machine->image, start, &left) : NULL;

	if (!data || !text || end <= start || end - start > left || text_end <= text)
		return;
	if (label_table_read((struct bytes){ data, end - start }, start, text, text_end,
			     &machine->labels))
		label_table_free(&machine->labels);
	label_table_see(&machine->labels, &machine->image);
}

/* Make the tables of jump labels, probes and ftrace when one is first asked for. */
static void load_tables(struct machine *machine)
{
	if (atomic_load_explicit(&machine->tables_are_loaded, memory_order_acquire))
		return;
	machine_load_symbols(machine);
	(void)pthread_mutex_lock(&machine->lock);
	if (!atomic_load_explicit(&machine->tables_are_loaded, memory_order_relaxed)) {
		load_labels(machine);
		if (probe_table_read(&machine->symbols, &machine->probes))
			probe_table_free(&machine->probes);
		if (ftrace_table_read(machine, &machine->ftrace))
			ftrace_table_free(&machine->ftrace);
		atomic_store_explicit(&machine->tables_are_loaded, true, memory_order_release);
	}
	(void)pthread_mutex_unlock(&machine->lock);
}

const struct label_table *machine_labels(struct machine *machine)
{
	load_tables(machine);
	return machine->labels.count ? &machine->labels : NULL;
}

const struct caller_table *machine_callers(struct machine *machine)
{
	struct caller_table *table = &machine->callers;

	if (!atomic_load_explicit(&machine->callers_are_loaded, memory_order_acquire)) {
		machine_load_symbols(machine);
		(void)pthread_mutex_lock(&machine->lock);
		if (!atomic_load_explicit(&machine->callers_are_loaded, memory_order_relaxed) &&
		    caller_table_read(&machine->symbols, &machine->image, table))
			caller_table_free(table);
		atomic_store_explicit(&machine->callers_are_loaded, true, memory_order_release);
		(void)pthread_mutex_unlock(&machine->lock);
	}
	return table->count ? table : NULL;
}

const struct probe_table *machine_probes(struct machine *machine)
{
	load_tables(machine);
	return machine->probes.count ? &machine->probes : NULL;
}

const struct ftrace_table *machine_ftrace(struct machine *machine)
{
	load_tables(machine);
	return machine->ftrace.count ? &machine->ftrace : NULL;
}

const struct tracepoint_table *machine_tracepoints(struct machine *machine)
{
	struct tracepoint_table *table = &machine->tracepoints;
	const struct probe_table *probes;

	if (!atomic_load_explicit(&machine->tracepoints_are_loaded, memory_order_acquire)) {
		(void)pthread_mutex_lock(&machine->tracepoints_lock);
		probes = machine_probes(machine);
		if (probes && !table->count && tracepoint_table_read(machine, probes, table))
			tracepoint_table_free(table);
		atomic_store_explicit(&machine->tracepoints_are_loaded, true, memory_order_release);
		(void)pthread_mutex_unlock(&machine->tracepoints_lock);
	}
	return table->count ? table : NULL;
}

/* The address of a symbol, which may have an older name (NULL: no), that `known` keeps; 0 if there
 * is none. */
static uint64_t find_once(struct machine *machine, atomic_uint_least64_t *known, const char *name,
			  const char *older_name)
{
	enum { NONE = 1 };
	uint64_t ip = atomic_load_explicit(known, memory_order_relaxed);

	if (!ip) { /* whoever asks at the same time finds the same */
		ip = machine_symbol_address(machine, name);
		if (!ip && older_name)
			ip = machine_symbol_address(machine, older_name);
		atomic_store_explicit(known, ip ? ip : NONE, memory_order_relaxed);
	}
	return ip == NONE ? 0 : ip;
}

uint64_t machine_int3_handler(struct machine *machine)
{
	return find_once(machine, &machine->int3_handler, "asm_exc_int3",
			 "int3" /* before Linux 5.8 */);
}

uint64_t machine_switch_to(struct machine *machine)
{
	return machine->is_flat ? 0 : find_once(machine, &machine->switch_to, "__switch_to", NULL);
}
