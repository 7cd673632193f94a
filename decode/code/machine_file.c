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

static int add_symbols(struct machine *machine, const struct elf_file *file, uint64_t base)
{
	size_t old_count = machine->symbols.count;

	if (elf_file_symbols(file, ELF_ADDRESSES, file, &machine->symbols))
		return -PTVM_NO_MEMORY;
	for (size_t i = old_count; i < machine->symbols.count; i++) {
		machine->symbols.items[i].start += base;
		machine->symbols.items[i].end += base;
	}
	return symbols_finish(&machine->symbols, false);
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
	if (history_finish(&machine->maps.history, &dropped) || add_symbols(machine, file, base))
		return -PTVM_NO_MEMORY;
	return 0;
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
