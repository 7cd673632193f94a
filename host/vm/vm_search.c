#include "host/vm/vm_search.h"

#include <errno.h>
#include <time.h>

#include "guest/direct_map.h"
#include "guest/guest_kernel.h"
#include "host/vm/ram_layout.h"
#include "host/vm/ram_mappings.h"
#include "host/vm/vmcoreinfo_search.h"

enum { LOOKS = 10, LOOK_NANOSECONDS = 100000000 };

/* A kernel that is there, in the layout that suits it best. */
struct candidate {
	struct vmcoreinfo info;
	struct ram_layout layout;
	struct direct_map map;
	uint64_t spare;
	bool has_rival; /* another layout is as good */
	uint64_t clock; /* address of its jiffies; 0: not known */
	uint64_t ticks; /* that they showed first */
	bool is_alive;  /* they go on */
};

struct candidates {
	struct candidate items[VMCOREINFO_FOUND];
	size_t count;
};

static void apply(const struct candidate *candidate, struct vm_memory *memory)
{
	const struct ram_layout *layout = &candidate->layout;

	memory->count = layout->count;
	for (size_t i = 0; i < layout->count; i++) {
		const struct ram_piece *piece = &layout->pieces[i];

		memory->ranges[i] =
			(struct vm_memory_range){ { piece->guest, piece->guest + piece->size - 1 },
						  piece->address };
	}
	memory->unknown_end = candidate->map.end;
	memory->page_roots[0] = candidate->info.root;
	memory->root_count = 1;
}

static bool is_same(const struct ram_layout *a, const struct ram_layout *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++)
		if (a->pieces[i].address != b->pieces[i].address)
			return false;
	return a->count == b->count;
}

/* Keep the better one; `next` has a layout that suits. */
static void prefer(struct candidate *best, const struct candidate *next)
{
	if (!best->layout.count || next->spare < best->spare)
		*best = *next;
	else if (next->spare == best->spare)
		best->has_rival |= !is_same(&best->layout, &next->layout);
}

/* The layout that suits a kernel; where there is none, that of `ret` has no pieces. A wrong guess
 * may lead to pages that cannot be read (EIO), such as those of devices. */
static int find_layout(const struct ram_mappings *mappings, const struct vmcoreinfo *info,
		       struct vm_memory *memory, struct candidate *ret, struct ptvm_error *error)
{
	const struct guest_memory reader = vm_memory_reader(memory);
	struct candidate next = { .info = *info };
	struct ram_guess guess = { 0 };
	struct ptvm_error why;
	int r;

	*ret = next;
	while (ram_layout_next(mappings, &guess, &next.layout)) {
		next.map = (struct direct_map){ 0 };
		apply(&next, memory);
		why = (struct ptvm_error){ 0 };
		r = direct_map_read(&reader, info, &next.map, &why);
		if (r && r != -PTVM_NOT_FOUND && why.sys_errno != EIO)
			return ptvm_fail_as(error, &why, r);
		if (!r && ram_layout_fits(&next.layout, &next.map, &next.spare))
			prefer(ret, &next);
	}
	return 0;
}

/* The kernel's own pointer to its VMCOREINFO must lead to what it was found by. One whose symbols
 * are of code only has none to ask. */
static int leads_back(struct guest_kernel *kernel, const struct vmcoreinfo *info,
		      struct ptvm_error *error)
{
	char text[VMCOREINFO_BYTES + 1];
	struct vmcoreinfo found;
	int r = guest_kernel_vmcoreinfo(kernel, text, error);

	if (r <= 0)
		return r;
	return vmcoreinfo_read(text, &found) && found.root.cr3 == info->root.cr3 &&
			       found.root_address == info->root_address
		       ? 0
		       : -PTVM_NOT_FOUND;
}

static int check(struct candidate *candidate, struct vm_memory *memory, struct ptvm_error *error)
{
	const struct guest_memory reader = vm_memory_reader(memory);
	struct guest_kernel kernel;
	int r;

	apply(candidate, memory);
	r = guest_kernel_find(&reader, memory->page_roots, memory->root_count, &kernel, error);
	if (!r)
		r = leads_back(&kernel, &candidate->info, error);
	if (!r)
		candidate->clock = guest_kernel_symbol(&kernel, "jiffies_64");
	guest_kernel_free(&kernel);
	return r;
}

/* `error` says, also on success, what the last candidate lacked that is no kernel. */
static int find_kernels(const struct ram_mappings *mappings, const struct vmcoreinfo_list *infos,
			struct vm_memory *memory, struct candidates *ret, struct ptvm_error *error)
{
	struct candidate *next;
	int r;

	ret->count = 0;
	for (size_t i = 0; i < infos->count; i++) {
		*error = (struct ptvm_error){ 0 };
		next = &ret->items[ret->count];
		r = find_layout(mappings, &infos->items[i], memory, next, error);
		if (!r && next->layout.count)
			r = check(next, memory, error);
		if (r && r != -PTVM_NOT_FOUND)
			return r;
		ret->count += !r && next->layout.count;
	}
	return 0;
}

static int say_why_none(pid_t pid, const struct ptvm_error *why, struct ptvm_error *error)
{
	return why->code ? ptvm_fail_as(error, why, -(int)why->code)
			 : ptvm_fail(error, PTVM_NOT_FOUND,
				     "process %d has the VMCOREINFO of a kernel, but none of the "
				     "layouts of RAM that are known leads from it to the kernel",
				     pid);
}

static int read_clock(const struct candidate *candidate, struct vm_memory *memory, uint64_t *ret,
		      struct ptvm_error *error)
{
	const struct guest_memory reader = vm_memory_reader(memory);
	struct page_walk walk;

	*ret = 0;
	apply(candidate, memory);
	page_walk_init(&walk, &reader, candidate->info.root);
	return candidate->clock ? page_walk_read(&walk, candidate->clock, ret, sizeof(*ret), error)
				: 0;
}

/* What an earlier boot left in memory may be whole, but its time stands still. */
static int look_at_clocks(struct candidates *candidates, struct vm_memory *memory,
			  struct ptvm_error *error)
{
	const struct timespec pause = { .tv_nsec = LOOK_NANOSECONDS };
	uint64_t ticks;
	int r = 0;

	for (unsigned look = 0; look < LOOKS && !r; look++) {
		for (size_t i = 0; i < candidates->count && !r; i++) {
			struct candidate *candidate = &candidates->items[i];

			r = read_clock(candidate, memory, &ticks, error);
			if (!look)
				candidate->ticks = ticks;
			candidate->is_alive |= ticks != candidate->ticks;
		}
		(void)nanosleep(&pause, NULL);
	}
	return r;
}

/* The only one that is alive; NULL: that cannot be told. */
static const struct candidate *find_alive(const struct candidates *candidates)
{
	const struct candidate *alive = NULL;

	for (size_t i = 0; i < candidates->count; i++) {
		if (candidates->items[i].is_alive && alive)
			return NULL;
		if (candidates->items[i].is_alive)
			alive = &candidates->items[i];
	}
	return alive;
}

static int choose(struct candidates *candidates, struct vm_memory *memory, pid_t pid,
		  struct ptvm_error *error)
{
	const struct candidate *chosen = &candidates->items[0];
	int r = 0;

	if (candidates->count > 1) {
		r = look_at_clocks(candidates, memory, error);
		chosen = find_alive(candidates);
	}
	if (r)
		return r;
	if (!chosen)
		return ptvm_fail(
			error, PTVM_INCONSISTENT,
			"memory of process %d has %zu kernels, of earlier boots or of guests "
			"in the guest, and which one runs cannot be told: is it paused?",
			pid, candidates->count);
	if (chosen->has_rival)
		return ptvm_fail(error, PTVM_INCONSISTENT,
				 "where in process %d the guest's RAM is cannot be told", pid);
	apply(chosen, memory);
	return 0;
}

static int search(const struct roots *roots, pid_t pid, struct ram_mappings *mappings,
		  struct vm_memory *memory, struct ptvm_error *error)
{
	struct vmcoreinfo_list infos;
	struct candidates candidates;
	struct ptvm_error why = { 0 };
	int r = ram_mappings_read(roots, pid, mappings, error);

	if (!r)
		r = vmcoreinfo_search(roots, pid, memory->file, mappings, &infos, error);
	if (!r && !infos.count)
		r = ptvm_fail(error, PTVM_NOT_FOUND,
			      "no VMCOREINFO in the memory of process %d: its guest has not booted "
			      "Linux, or one without CONFIG_VMCORE_INFO (before 6.9 "
			      "CONFIG_CRASH_CORE)",
			      pid);
	if (r)
		return r;
	r = find_kernels(mappings, &infos, memory, &candidates, &why);
	if (r || !candidates.count)
		return r == -PTVM_NO_MEMORY ? r : say_why_none(pid, &why, error);
	return choose(&candidates, memory, pid, error);
}

int vm_search_open(const struct roots *roots, pid_t pid, struct vm_memory *ret,
		   struct ptvm_error *error)
{
	struct ram_mappings mappings = { 0 };
	int r = vm_memory_open_process(roots, pid, ret, error);

	if (!r)
		r = search(roots, pid, &mappings, ret, error);
	ram_mappings_free(&mappings);
	return r;
}
