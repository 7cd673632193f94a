/* Code given by hand: ELF and flat files put at addresses, one address space for everything. */
#include <string.h>

#include "decode/base/plural.h"
#include "decode/base/vec.h"
#include "decode/code/machine_parts.h"

/* Put bytes at an address, under the file's own name. */
static int add_piece(struct machine *machine, const char *path, const char *name, uint64_t address,
		     struct bytes bytes, struct ptvm_error *error)
{
	int r = image_add(&machine->image, address, bytes.data, bytes.size);

	if (!r)
		r = named_ranges_add(&machine->maps, address, address + bytes.size, 0, name);
	if (r == -PTVM_BAD_INPUT)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: nothing fits at 0x%llx", path,
				 (unsigned long long)address);
	return r ? -PTVM_NO_MEMORY : 0;
}

static void add_symbols(struct symbols *symbols, const struct machine_mapping *mapping)
{
	size_t old_count = symbols->count;
	struct elf_file file;

	if (!elf_file_read(mapping->path, mapping->bytes, &file, NULL))
		(void)elf_file_symbols(&file, ELF_ADDRESSES, &file, symbols);
	elf_file_close(&file);
	for (size_t i = old_count; i < symbols->count; i++) {
		symbols->items[i].start += mapping->base;
		symbols->items[i].end += mapping->base;
	}
	(void)symbols_finish(symbols, false);
}

void machine_load_symbols(struct machine *machine)
{
	if (!atomic_load_explicit(&machine->has_unread_symbols, memory_order_acquire))
		return;
	(void)pthread_mutex_lock(&machine->lock);
	for (size_t i = 0; i < machine->files.count; i++)
		if (machine->files.items[i].has_symbols) {
			machine->files.items[i].has_symbols = false;
			add_symbols(&machine->symbols, &machine->files.items[i]);
		}
	atomic_store_explicit(&machine->has_unread_symbols, false, memory_order_release);
	(void)pthread_mutex_unlock(&machine->lock);
}

static int add_segments(struct machine *machine, const char *path, const struct elf_file *file,
			uint64_t base, struct ptvm_error *error)
{
	const char *name = arena_strndup(&machine->names, path, strlen(path));
	size_t dropped;

	if (!name)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < file->segments.count; i++) {
		const struct elf_segment *segment = &file->segments.items[i];
		int r = add_piece(machine, path, name, segment->address + base,
				  bytes_slice(file->bytes, segment->offset, segment->size), error);

		if (r)
			return r;
	}
	if (file->cut_segments)
		machine_note(machine, "%s: %zu segment%s not wholly in the file", path,
			     file->cut_segments, plural(file->cut_segments));
	return history_finish(&machine->maps.history, &dropped) ? -PTVM_NO_MEMORY : 0;
}

/* The file that was added last has symbols, too. Most runs that look for errors need none. */
static void leave_symbols(struct machine *machine, uint64_t base)
{
	struct machine_mapping *mapping = &machine->files.items[machine->files.count - 1];

	mapping->has_symbols = true;
	mapping->base = base;
	atomic_store_explicit(&machine->has_unread_symbols, true, memory_order_relaxed);
}

int machine_add_elf(struct machine *machine, const char *path, uint64_t base,
		    struct ptvm_error *error)
{
	struct elf_file file;
	int r = machine_open_elf(machine, path, &file, error);

	machine->is_flat = true;
	if (!r && !file.segments.count)
		r = ptvm_fail(error, PTVM_BAD_INPUT, "%s: nothing to load in it", path);
	if (!r)
		r = add_segments(machine, path, &file, base, error);
	if (!r)
		leave_symbols(machine, base);
	elf_file_close(&file);
	return r;
}

int machine_add_raw(struct machine *machine, const char *path, uint64_t from, uint64_t to,
		    uint64_t address, struct ptvm_error *error)
{
	const char *name = arena_strndup(&machine->names, path, strlen(path));
	struct bytes bytes;
	size_t dropped;
	int r = machine_keep_file(machine, path, &bytes, error);

	machine->is_flat = true;
	if (r)
		return r;
	if (!to)
		to = bytes.size;
	if (from >= to || to > bytes.size)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: has no bytes %llu to %llu", path,
				 (unsigned long long)from, (unsigned long long)to);
	if (!name)
		return -PTVM_NO_MEMORY;
	r = add_piece(machine, path, name, address, bytes_slice(bytes, from, to - from), error);
	if (!r && history_finish(&machine->maps.history, &dropped))
		r = -PTVM_NO_MEMORY;
	return r;
}
