#include "guest/guest_kernel.h"

#include <string.h>

/* The bit of CR3 that tells a process's tables with little of the kernel from those with all of it,
 * where page table isolation is on (PTI_USER_PGTABLE_BIT of Linux). */
static const uint64_t user_half = UINT64_C(1) << 12;

enum { PAGE = 4096 };

/* Take these page tables where they map more of the kernel than `*most` bytes. */
static int try_root(struct guest_kernel *kernel, struct page_root root, uint64_t *most,
		    struct ptvm_error *error)
{
	struct page_root best = kernel->walk.root;
	uint64_t mapped;
	int r;

	page_walk_init(&kernel->walk, &kernel->memory, root);
	r = kernel_image_measure(&kernel->walk, &mapped, error);
	if (!r && mapped > *most)
		*most = mapped;
	else
		page_walk_init(&kernel->walk, &kernel->memory, best);
	return r;
}

static int find_root(struct guest_kernel *kernel, const struct page_root *roots, size_t count,
		     uint64_t *most, struct ptvm_error *error)
{
	struct page_root whole;
	int r = 0;

	for (size_t i = 0; i < count && i < GUEST_KERNEL_ROOTS && !r; i++) {
		whole = roots[i];
		whole.cr3 &= ~user_half;
		r = try_root(kernel, roots[i], most, error);
		if (!r && whole.cr3 != roots[i].cr3)
			r = try_root(kernel, whole, most, error);
	}
	return r;
}

/* From now on use the tables that the kernel began with: those of a process go with it. */
static int keep_root(struct guest_kernel *kernel, uint64_t most, struct ptvm_error *error)
{
	uint64_t address = guest_kernel_symbol(kernel, "init_top_pgt");
	struct page_root root = kernel->walk.root;
	struct page_run run;
	int r = 0;

	if (address && !(address % PAGE))
		r = page_walk_next(&kernel->walk, address, address + PAGE, &run, error);
	if (r <= 0)
		return r;
	root.cr3 = run.physical;
	most--;
	return try_root(kernel, root, &most, error);
}

int guest_kernel_find(const struct guest_memory *memory, const struct page_root *roots,
		      size_t count, struct guest_kernel *ret, struct ptvm_error *error)
{
	uint64_t most = 0;
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->memory = *memory;
	page_walk_init(&ret->walk, &ret->memory, roots[0]);
	r = find_root(ret, roots, count, &most, error);
	if (!r)
		r = kernel_image_read(&ret->walk, &ret->image, error);
	if (!r)
		r = kallsyms_tables_find(ret->image.bytes, ret->image.address, &ret->symbols,
					 error);
	ret->image_end = ret->image.address + ret->image.bytes.size;
	return r ? r : keep_root(ret, most, error);
}

uint64_t guest_kernel_symbol(const struct guest_kernel *kernel, const char *name)
{
	return kallsyms_tables_address(&kernel->symbols, name);
}

int guest_kernel_vmcoreinfo(struct guest_kernel *kernel, char text[VMCOREINFO_BYTES + 1],
			    struct ptvm_error *error)
{
	const uint64_t variable = guest_kernel_symbol(kernel, "vmcoreinfo_data");
	uint64_t address = 0;
	int r;

	memset(text, 0, VMCOREINFO_BYTES + 1);
	if (!variable)
		return 0;
	r = page_walk_read(&kernel->walk, variable, &address, sizeof(address), error);
	if (!r && address)
		r = page_walk_read(&kernel->walk, address, text, VMCOREINFO_BYTES, error);
	return r ? r : 1;
}

void guest_kernel_free(struct guest_kernel *kernel)
{
	kernel_image_free(&kernel->image);
}
