/* A kernel's code and symbols from kcore, kallsyms, modules and vmlinux. */
#include <inttypes.h>
#include <string.h>

#include "decode/base/plural.h"
#include "decode/base/vec.h"
#include "decode/code/kallsyms.h"
#include "decode/code/machine_parts.h"

enum {
	PAGE = 4096,
	INT3 = 0xcc,
	CHUNK = 64, /* bytes: programs of BPF have whole ones (BPF_PROG_CHUNK_SIZE of Linux) */
};

/* A failure of a file that the user did not name becomes a note, and loading goes on. */
static int settle(struct machine *machine, int r, const char *asked, const struct ptvm_error *from,
		  struct ptvm_error *error)
{
	if (!r)
		return 0;
	if (asked || r == -PTVM_NO_MEMORY)
		return ptvm_fail_as(error, from, r);
	machine_note(machine, "%s", from->message);
	return 0;
}

/* Put the kernel's segments in the image, moved by `delta`. */
static int add_segments(struct machine *machine, const char *path, const struct elf_file *file,
			uint64_t delta, struct ptvm_error *error)
{
	size_t added = 0;

	for (size_t i = 0; i < file->segments.count; i++) {
		const struct elf_segment *segment = &file->segments.items[i];
		uint64_t address = segment->address + delta;
		struct bytes bytes = bytes_slice(file->bytes, segment->offset, segment->size);
		int r = address >> 63 ? image_add(&machine->image, address, bytes.data, bytes.size)
				      : -PTVM_BAD_INPUT;

		if (r == -PTVM_NO_MEMORY)
			return -PTVM_NO_MEMORY;
		added += !r;
	}
	if (!added)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: no kernel code in it", path);
	if (file->cut_segments)
		machine_note(machine, "%s: %zu segment%s not wholly in the file", path,
			     file->cut_segments, plural(file->cut_segments));
	return 0;
}

/* To perf all code in a kcore is the kernel's, that of modules too. */
static int name_pieces(struct machine *machine)
{
	const struct image *image = &machine->image;
	size_t dropped;

	vec_free(&machine->maps.list);
	history_free(&machine->maps.history);
	for (size_t i = 0; i < image->count; i++)
		if (named_ranges_add(&machine->maps, image->items[i].start, image->items[i].end, 0,
				     machine->kernel_name))
			return -PTVM_NO_MEMORY;
	return history_finish(&machine->maps.history, &dropped);
}

/* Memory for code that is not in use is full of INT3 (mm/execmem.c). */
static bool is_unused(const uint8_t *page)
{
	return page[0] == INT3 && !memcmp(page, page + 1, PAGE - 1);
}

static bool has_no_code(const struct image *image, uint64_t address)
{
	size_t left;
	const uint8_t *page = image_find(image, address, &left);

	return !page || (left >= PAGE && is_unused(page));
}

/* How many bytes from `at` on, in whole pages, are of addresses that have no code yet, or only
 * what fills unused memory. */
static uint64_t missing_bytes(const struct image *image, const struct elf_segment *segment,
			      uint64_t at)
{
	uint64_t end = at;

	while (end + PAGE <= segment->size && has_no_code(image, segment->address + end))
		end += PAGE;
	return end - at;
}

/* Add code where there is none yet: that of modules which were loaded while recording. */
static int add_missing(struct image *image, const struct elf_file *file)
{
	int r = 0;

	for (size_t i = 0; i < file->segments.count; i++) {
		const struct elf_segment *segment = &file->segments.items[i];
		uint64_t size;

		for (uint64_t at = 0; at < segment->size && segment->address >> 63 && !r;
		     at += size + PAGE) {
			size = missing_bytes(image, segment, at);
			if (size)
				r = image_add(image, segment->address + at,
					      file->bytes.data + segment->offset + at, size);
		}
	}
	return r == -PTVM_NO_MEMORY ? r : 0;
}

static size_t count_int3s(const uint8_t *page, size_t at)
{
	size_t end = at;

	while (end < PAGE && page[end] == INT3)
		end++;
	return end - at;
}

static uint8_t *copy_page(struct machine *machine, const uint8_t *page)
{
	uint8_t *copy = arena_alloc(&machine->names, PAGE);

	return copy ? memcpy(copy, page, PAGE) : NULL;
}

/* A page with what came where nothing was in use, as programs of BPF do one by one: `before` itself
 * where nothing did. NULL when memory is out. */
static const uint8_t *fill_unused(struct machine *machine, const uint8_t *before,
				  const uint8_t *after)
{
	uint8_t *page = NULL;

	for (size_t at = 0, size; at < PAGE; at += size ? size : 1) {
		size = count_int3s(before, at);
		if (size < CHUNK || !memcmp(before + at, after + at, size))
			continue;
		if (!page && !(page = copy_page(machine, before)))
			return NULL;
		memcpy(page + at, after + at, size);
	}
	return page ? page : before;
}

/* Keep a page of a later copy that differs: where packets and code disagree, that may be why. */
static int add_page(struct machine *machine, uint64_t address, const uint8_t *after)
{
	const uint8_t *before, *filled;
	size_t left;
	int r = 0;

	before = image_find(&machine->image, address, &left);
	if (!before || left < PAGE || !memcmp(before, after, PAGE))
		return 0;
	filled = fill_unused(machine, before, after);
	if (!filled)
		return -PTVM_NO_MEMORY;
	if (filled != before)
		r = image_add(&machine->image, address, filled, PAGE);
	return r ? r
		 : later_code_add(&machine->later, address, filled, (struct bytes){ after, PAGE });
}

static int add_changed(struct machine *machine, const struct elf_file *file)
{
	int r = 0;

	for (size_t i = 0; i < file->segments.count; i++) {
		const struct elf_segment *segment = &file->segments.items[i];
		const uint8_t *data = file->bytes.data + segment->offset;

		for (uint64_t at = 0; at + PAGE <= segment->size && segment->address >> 63 && !r;
		     at += PAGE)
			r = add_page(machine, segment->address + at, data + at);
	}
	return r;
}

/* Read the later copy. Where the first one has code, it stays: when it changed is not known. What
 * is added has no other form, so that it comes first. */
static int load_later(struct machine *machine, const char *path, struct ptvm_error *error)
{
	struct elf_file file;
	int r = machine_open_elf(machine, path, &file, error);

	if (!r && (add_missing(&machine->image, &file) || add_changed(machine, &file)))
		r = -PTVM_NO_MEMORY;
	elf_file_close(&file);
	return r;
}

static int load_kcore(struct machine *machine, const struct kernel_files *files,
		      struct ptvm_error *error)
{
	struct ptvm_error story = { 0 };
	const char *path = files->kcore;
	struct elf_file file;
	int r = machine_open_elf(machine, path, &file, error);

	if (!r)
		r = add_segments(machine, path, &file, 0, error);
	if (!r && files->later_kcore)
		r = settle(machine, load_later(machine, files->later_kcore, &story), NULL, &story,
			   error);
	if (!r && name_pieces(machine))
		r = -PTVM_NO_MEMORY;
	if (!r) {
		symbols_clip(&machine->symbols, &machine->image);
		symbols_clip(&machine->later_symbols, &machine->image);
		r = later_code_group(&machine->later, &machine->later_symbols);
	}
	elf_file_close(&file);
	return r;
}

/* Move the kernel's own symbols; modules lie where they lie. */
static int move_kernel(struct symbols *symbols, uint64_t delta)
{
	for (size_t i = 0; i < symbols->count; i++) {
		if (symbols->items[i].module)
			continue;
		symbols->items[i].start += delta;
		symbols->items[i].end += delta;
	}
	return symbols_finish(symbols, true);
}

/* How far from where these symbols say the kernel was when it was traced (KASLR). */
static uint64_t displacement(const struct machine *machine, const struct symbols *symbols)
{
	uint64_t address = 0;

	if (machine->reference_name)
		address = symbols_address(symbols, machine->reference_name);
	return address ? machine->reference_address - address : 0;
}

/* Sets `ret_moved` if the symbols are of another boot than the recording: the kcore beside them is,
 * too. */
static int load_kallsyms(struct machine *machine, const char *path, bool *ret_moved,
			 struct ptvm_error *error)
{
	int r = kallsyms_load(path, &machine->symbols, error);
	uint64_t delta = r ? 0 : displacement(machine, &machine->symbols);

	*ret_moved = delta;
	if (!delta)
		return r;
	machine_note(machine, "%s: %s is not where it was when traced; moved by 0x%" PRIx64, path,
		     machine->reference_name, delta);
	if (move_kernel(&machine->symbols, delta))
		return -PTVM_NO_MEMORY;
	return 0;
}

static int read_vmlinux(struct machine *machine, const char *path, const struct elf_file *file,
			struct ptvm_error *error)
{
	struct symbols *symbols = &machine->symbols;
	uint64_t delta;

	if (elf_file_symbols(file, ELF_ADDRESSES, file, symbols) || symbols_finish(symbols, false))
		return -PTVM_NO_MEMORY;
	delta = displacement(machine, symbols);
	if (move_kernel(symbols, delta))
		return -PTVM_NO_MEMORY;
	return add_segments(machine, path, file, delta, error);
}

static int load_vmlinux(struct machine *machine, const char *path, struct ptvm_error *error)
{
	struct elf_file file;
	int r = machine_open_elf(machine, path, &file, error);

	if (!r)
		r = read_vmlinux(machine, path, &file, error);
	elf_file_close(&file);
	return r;
}

/* Modules by name, for a recording that has no maps of them. */
static int load_modules(struct machine *machine, const char *path, struct ptvm_error *error)
{
	struct modules modules = { 0 };
	int r = modules_load(path, &modules, error);
	size_t dropped;

	for (size_t i = 0; !r && i < modules.count; i++) {
		const struct module *module = &modules.items[i];
		const char *name =
			arena_strndup(&machine->names, module->name, strlen(module->name));

		if (!name || named_ranges_add(&machine->maps, module->start, module->end, 0, name))
			r = -PTVM_NO_MEMORY;
	}
	if (!r && history_finish(&machine->maps.history, &dropped))
		r = -PTVM_NO_MEMORY;
	modules_free(&modules);
	return r;
}

int machine_load_kernel(struct machine *machine, const struct kernel_files *files,
			const struct kernel_files *asked, struct ptvm_error *error)
{
	struct ptvm_error story = { 0 };
	bool is_moved = false;
	int r = 0;

	if (files->vmlinux)
		r = settle(machine, load_vmlinux(machine, files->vmlinux, &story), asked->vmlinux,
			   &story, error);
	story = (struct ptvm_error){ 0 };
	if (!r && files->kallsyms && !machine->symbols.count)
		r = settle(machine, load_kallsyms(machine, files->kallsyms, &is_moved, &story),
			   asked->kallsyms, &story, error);
	story = (struct ptvm_error){ 0 };
	if (!r && files->later_kallsyms && !is_moved)
		r = settle(machine,
			   kallsyms_load(files->later_kallsyms, &machine->later_symbols, &story),
			   NULL, &story, error);
	story = (struct ptvm_error){ 0 };
	if (!r && files->modules && !machine->maps.list.count)
		r = settle(machine, load_modules(machine, files->modules, &story), asked->modules,
			   &story, error);
	story = (struct ptvm_error){ 0 };
	if (!r && files->kcore && is_moved && !asked->kcore) {
		machine_note(machine, "%s: not used, it is of another boot", files->kcore);
	} else if (!r && files->kcore) {
		r = load_kcore(machine, files, &story);
		machine->no_kernel_noted = r; /* the reason is */
		r = settle(machine, r, asked->kcore, &story, error);
	}
	return r;
}
