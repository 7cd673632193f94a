#include "decode/code/machine.h"

#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/mapped_file.h"
#include "decode/base/printable.h"
#include "decode/base/vec.h"
#include "decode/code/machine_parts.h"

struct machine *machine_new(int32_t pid, bool is_guest)
{
	struct machine *machine = calloc(1, sizeof(*machine));
	char name[40];

	if (!machine)
		return NULL;
	machine->pid = pid;
	machine->is_guest = is_guest;
	(void)pthread_mutex_init(&machine->lock, NULL);
	(void)pthread_mutex_init(&machine->tracepoints_lock, NULL);
	if (!is_guest)
		strcpy(name, "[kernel.kallsyms]");
	else if (!pid)
		strcpy(name, "[guest.kernel.kallsyms]");
	else
		(void)snprintf(name, sizeof(name), "[guest.kernel.kallsyms.%d]", pid);
	machine->kernel_name = arena_strndup(&machine->names, name, strlen(name));
	if (machine->kernel_name)
		return machine;
	machine_free(machine);
	return NULL;
}

static void free_ranges(struct named_ranges *ranges)
{
	vec_free(&ranges->list);
	history_free(&ranges->history);
}

/* Does not free what a node of the tree points to, which is in an arena. */
static void keep(void *item)
{
}

void machine_free(struct machine *machine)
{
	if (!machine)
		return;
	image_free(&machine->image);
	later_code_free(&machine->later);
	label_table_free(&machine->labels);
	caller_table_free(&machine->callers);
	probe_table_free(&machine->probes);
	ftrace_table_free(&machine->ftrace);
	tracepoint_table_free(&machine->tracepoints);
	text_pokes_free(&machine->pokes);
	symbols_free(&machine->symbols);
	symbols_free(&machine->later_symbols);
	free_ranges(&machine->maps);
	free_ranges(&machine->ksymbols);
	processes_free(&machine->processes);
	for (size_t i = 0; i < machine->dsos.count; i++)
		dso_unload(machine->dsos.items[i]);
	vec_free(&machine->dsos);
	tdestroy(machine->dso_tree, keep);
	for (size_t i = 0; i < machine->files.count; i++)
		mapped_file_close(&machine->files.items[i].bytes);
	vec_free(&machine->files);
	for (size_t i = 0; i < machine->notes.count; i++)
		free(machine->notes.items[i]);
	vec_free(&machine->notes);
	arena_free(&machine->names);
	(void)pthread_mutex_destroy(&machine->lock);
	(void)pthread_mutex_destroy(&machine->tracepoints_lock);
	free(machine);
}

/* Without code of the kernel, only "no code" gaps are possible in it. */
static bool has_kernel(const struct machine *machine)
{
	size_t count = machine->image.count;

	return count && machine->image.items[count - 1].start >> 63;
}

uint64_t machine_symbol_address(struct machine *machine, const char *name)
{
	machine_load_symbols(machine);
	return symbols_address(&machine->symbols, name);
}

void machine_note(struct machine *machine, const char *format, ...)
{
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	if (text)
		printable(text, strlen(text));
	if (text && !vec_push(&machine->notes, text))
		free(text);
}

int machine_keep_file(struct machine *machine, const char *path, struct bytes *ret,
		      struct ptvm_error *error)
{
	struct machine_mapping file = { .path = arena_strndup(&machine->names, path,
							      strlen(path)) };
	int r = mapped_file_open(path, ret, error);

	if (r || !ret->size)
		return r;
	file.bytes = *ret;
	if (file.path && vec_push(&machine->files, file))
		return 0;
	mapped_file_close(ret);
	return -PTVM_NO_MEMORY;
}

int machine_open_elf(struct machine *machine, const char *path, struct elf_file *ret,
		     struct ptvm_error *error)
{
	struct bytes bytes;
	int r;

	*ret = (struct elf_file){ 0 };
	r = machine_keep_file(machine, path, &bytes, error);
	return r ? r : elf_file_read(path, bytes, ret, error);
}

int named_ranges_add(struct named_ranges *ranges, uint64_t start, uint64_t end, uint64_t time,
		     const char *name)
{
	if (!vec_push(&ranges->list, (struct named_range){ start, name }))
		return -PTVM_NO_MEMORY;
	return history_add(&ranges->history, start, end, time);
}

/* The range at `address` and `time`, or NULL. */
static const struct named_range *find_range(const struct named_ranges *ranges, uint64_t address,
					    uint64_t time)
{
	struct history_view view = history_find(&ranges->history, address, time);
	const struct named_range *range;

	if (view.item < 0)
		return NULL;
	range = &ranges->list.items[view.item];
	return range->name ? range : NULL;
}

static int compare_dso(const void *left, const void *right)
{
	const struct dso *a = left, *b = right;
	int r = strcmp(a->name, b->name);

	return r ? r : build_id_compare(&a->build_id, &b->build_id);
}

struct dso *machine_dso(struct machine *machine, const char *name, const struct build_id *build_id)
{
	const struct dso wanted = { .name = name, .build_id = *build_id };
	struct dso *const *found = tfind(&wanted, &machine->dso_tree, compare_dso);
	struct dso *dso;

	if (found)
		return *found;
	dso = arena_alloc(&machine->names, sizeof(*dso));
	if (!dso)
		return NULL;
	dso->name = name;
	dso->build_id = *build_id;
	if (!vec_push(&machine->dsos, dso) || !tsearch(dso, &machine->dso_tree, compare_dso))
		return NULL;
	return dso;
}

/* Read a file when code or symbols of it are first asked for: most files that are mapped never are.
 */
static void load_dso(struct machine *machine, struct dso *dso)
{
	char note[512];

	if (atomic_load_explicit(&dso->is_loaded, memory_order_acquire))
		return;
	(void)pthread_mutex_lock(&machine->lock);
	if (!atomic_load_explicit(&dso->is_loaded, memory_order_relaxed)) {
		dso_load(dso, &machine->places, note, sizeof(note));
		/* told at the end: which thread needs a file first is chance */
		if (*note)
			dso->note = strdup(note);
		atomic_store_explicit(&dso->is_loaded, true, memory_order_release);
	}
	(void)pthread_mutex_unlock(&machine->lock);
}

static bool is_kernel(const struct machine *machine, uint64_t address)
{
	return machine->is_flat || address >> 63;
}

static uint64_t known_time(const struct machine *machine, uint64_t time_ns)
{
	return machine->is_timeless ? UINT64_MAX - 1 : time_ns;
}

/* The first range of replaced code that ends behind `address`. If the address is in it, `since` is
 * known when this returns. */
static const struct later_range *next_replaced(const struct machine *machine, uint64_t address)
{
	const struct later_range *range = later_code_range(&machine->later, address);

	if (range && range->start <= address && machine->later.settle)
		machine->later.settle(machine->later.settle_context);
	return range;
}

/* The time from which on an address has the code of the later copy; UINT64_MAX: never. */
static uint64_t later_since(const struct machine *machine, const struct later_range *range,
			    uint64_t address)
{
	return range && range->start <= address ? later_code_since(&machine->later, range)
						: UINT64_MAX;
}

static bool is_later(uint64_t since, uint64_t time_ns)
{
	return since != UINT64_MAX && time_ns >= since;
}

/* Limit a view to where its bytes hold: not across the border of a range of replaced code, nor
 * across the time when it was replaced. */
static void limit_view(const struct later_range *range, uint64_t since, uint64_t address,
		       uint64_t time_ns, struct code_view *view)
{
	uint64_t border = range->start > address ? range->start : range->end;

	if (view->left > border - address)
		view->left = border - address;
	if (range->start > address)
		return;
	if (time_ns < since && view->to > since)
		view->to = since;
	if (time_ns >= since && view->from < since)
		view->from = since;
}

static int kernel_code(const struct machine *machine, uint64_t address, uint64_t time_ns,
		       struct code_view *ret)
{
	const struct later_range *range = next_replaced(machine, address);
	uint64_t since = later_since(machine, range, address);
	const struct image *image =
		is_later(since, time_ns) ? &machine->later.image : &machine->image;
	struct text_view view;
	int r = text_pokes_find(&machine->pokes, image, address, time_ns, &view);

	*ret = (struct code_view){ view.data, view.left, view.from, view.to };
	if (range)
		limit_view(range, since, address, time_ns, ret);
	return r;
}

struct later_range *machine_replaced(struct machine *machine, size_t *ret_count)
{
	*ret_count = machine->later.ranges.count;
	return machine->later.ranges.items;
}

struct later_range *machine_replaced_at(struct machine *machine, uint64_t address)
{
	struct later_range *range = later_code_range(&machine->later, address);

	return range && range->start <= address ? range : NULL;
}

void machine_replaced_settle(struct machine *machine, void (*settle)(void *context), void *context)
{
	machine->later.settle = settle;
	machine->later.settle_context = context;
}

void machine_replaced_assume(struct machine *machine, enum later_version version)
{
	machine->later.version = version;
}

bool machine_has_later_code(const struct machine *machine)
{
	return machine->later.changes.count;
}

struct bytes machine_later_code(const struct machine *machine, uint64_t address, size_t size,
				uint64_t time_ns)
{
	struct history_view view;

	if (!machine->later.changes.count)
		return (struct bytes){ 0 };
	view = history_find(&machine->pokes.history, address, known_time(machine, time_ns));
	if (view.item >= 0 || view.next >= 0)
		return (struct bytes){ 0 };
	return later_code_find(&machine->later, address, size);
}

static int user_code(struct machine *machine, int32_t pid, uint64_t address, uint64_t time_ns,
		     struct code_view *ret)
{
	struct process_view view;
	struct bytes bytes = { 0 };

	if (processes_find(&machine->processes, pid, address, time_ns, &view)) {
		load_dso(machine, view.map->dso);
		bytes = bytes_slice(view.map->dso->file,
				    address - view.map->start + view.map->page_offset,
				    view.end - address);
	}
	*ret = (struct code_view){ bytes.data, bytes.size, view.from, view.to };
	return bytes.size ? 0 : -PTVM_NO_CODE;
}

/* Note, once, that a kernel is asked about of which there is no copy, and which options name one.
 */
static void note_no_kernel(struct machine *machine)
{
	if (machine->is_flat || has_kernel(machine))
		return; /* what is given by hand need not be all */
	(void)pthread_mutex_lock(&machine->lock);
	if (machine->no_kernel_noted)
		; /* once is enough */
	else if (machine->pid)
		machine_note(machine,
			     "%s: no copy of its code: put its kallsyms and kcore into "
			     "kcore_dir__%d of the recording, or into %d/proc below --guestmount",
			     machine->kernel_name, machine->pid, machine->pid);
	else
		machine_note(machine, "%s: no copy of its code: %s", machine->kernel_name,
			     machine->is_guest
				     ? "name --guestkallsyms, with kcore beside it, or "
				       "--guestvmlinux"
				     : "name --kallsyms, with kcore beside it, or -k; perf "
				       "buildid-cache --kcore /proc/kcore keeps that which runs");
	machine->no_kernel_noted = true;
	(void)pthread_mutex_unlock(&machine->lock);
}

/* Limit a view to where its symbols hold, too: who has it prepares their names with the code. */
static void limit_to_symbols(const struct machine *machine, uint64_t address, uint64_t time_ns,
			     struct code_view *view)
{
	const struct history_view symbol =
		history_find(&machine->ksymbols.history, address, time_ns);

	if (symbol.end && view->left > symbol.end - address)
		view->left = symbol.end - address;
	if (view->from < symbol.from)
		view->from = symbol.from;
	if (view->to > symbol.to)
		view->to = symbol.to;
}

int machine_code(struct machine *machine, int32_t pid, uint64_t address, uint64_t time_ns,
		 struct code_view *ret)
{
	uint64_t time = known_time(machine, time_ns);
	int r = is_kernel(machine, address) ? kernel_code(machine, address, time, ret)
					    : user_code(machine, pid, address, time, ret);

	if (is_kernel(machine, address)) {
		limit_to_symbols(machine, address, time, ret);
		if (r)
			note_no_kernel(machine);
	}
	if (machine->is_timeless) {
		ret->from = 0;
		ret->to = UINT64_MAX;
	}
	return r;
}

/* The symbol of an address in the copy whose code is there at that time. Where the first copy has
 * no symbol, a module may have been loaded later. */
static const struct symbol *find_symbol(struct machine *machine, uint64_t address, uint64_t time_ns)
{
	const struct later_range *range = next_replaced(machine, address);
	bool is_replaced = range && range->start <= address;
	bool is_new = is_later(later_since(machine, range, address), time_ns);
	const struct symbol *symbol;

	machine_load_symbols(machine);
	symbol = is_new ? NULL : symbols_find(&machine->symbols, address);
	if (symbol || (is_replaced && !is_new))
		return symbol;
	return symbols_find(&machine->later_symbols, address);
}

const char *machine_module(struct machine *machine, uint64_t address, uint64_t time_ns)
{
	const struct symbol *symbol = find_symbol(machine, address, known_time(machine, time_ns));

	return symbol ? symbol->module : NULL;
}

bool machine_module_start(struct machine *machine, uint64_t address, uint64_t time_ns,
			  uint64_t *ret)
{
	const struct symbol *symbol = find_symbol(machine, address, known_time(machine, time_ns));

	if (!symbol || !symbol->module)
		return false;
	*ret = symbol->start;
	return true;
}

static void kernel_symbol(struct machine *machine, uint64_t address, uint64_t time_ns,
			  struct symbol_view *ret)
{
	const struct named_range *range = find_range(&machine->ksymbols, address, time_ns);
	const struct symbol *symbol;

	if (range) {
		*ret = (struct symbol_view){ range->name, address - range->start, range->name };
		return;
	}
	range = find_range(&machine->maps, address, time_ns);
	if (range)
		ret->dso = range->name;
	symbol = find_symbol(machine, address, time_ns);
	if (!symbol)
		return;
	ret->name = symbol->name;
	ret->offset = address - symbol->start;
	if (!ret->dso)
		ret->dso = symbol->module ? symbol->module : machine->kernel_name;
}

static void user_symbol(struct machine *machine, int32_t pid, uint64_t address, uint64_t time_ns,
			struct symbol_view *ret)
{
	const struct symbol *symbol;
	struct process_view view;
	uint64_t offset;

	if (!processes_find(&machine->processes, pid, address, time_ns, &view))
		return;
	load_dso(machine, view.map->dso);
	ret->dso = view.map->dso->name;
	offset = address - view.map->start + view.map->page_offset;
	symbol = symbols_find(&view.map->dso->symbols, offset);
	if (!symbol)
		return;
	ret->name = symbol->name;
	ret->offset = offset - symbol->start;
}

void machine_symbol(struct machine *machine, int32_t pid, uint64_t address, uint64_t time_ns,
		    struct symbol_view *ret)
{
	uint64_t time = known_time(machine, time_ns);

	*ret = (struct symbol_view){ 0 };
	if (!is_kernel(machine, address)) {
		user_symbol(machine, pid, address, time, ret);
		return;
	}
	kernel_symbol(machine, address, time, ret);
	if (!ret->name && !machine->symbols.count)
		note_no_kernel(machine);
}

uint64_t machine_file_address(const struct machine *machine, int32_t pid, uint64_t address,
			      uint64_t time_ns)
{
	struct process_view view;

	if (is_kernel(machine, address) ||
	    !processes_find(&machine->processes, pid, address, known_time(machine, time_ns),
			    &view) ||
	    view.map->dso->is_anonymous)
		return address;
	return address - view.map->start + view.map->page_offset;
}
