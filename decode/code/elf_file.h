/* One ELF file in memory: which bytes are loaded where, its symbols and its build id. Serves kcore,
 * vmlinux, programs and libraries alike; what is damaged in it is left out. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/base/error.h"
#include "decode/code/symbols.h"
#include "decode/perf/build_id.h"

/** A loadable segment; its bytes lie within the file. */
struct elf_segment {
	uint64_t address, offset, size; /* size: bytes in the file, > 0 */
	uint32_t flags;                 /* PF_X and so on */
};

enum {
	ELF_MAX_SEGMENTS = 4096, /* a live kcore has fewer than 100 */
	ELF_MAX_SYMBOLS = 4 << 20,
};

struct elf_file {
	struct bytes bytes;
	struct Elf *elf;
	struct {
		struct elf_segment *items;
		size_t count, room;
	} segments;
	uint16_t type; /* ET_EXEC and so on */
	struct build_id build_id;
	size_t cut_segments; /* not wholly in the file, or above ELF_MAX_SEGMENTS */
};

/**
 * Read an ELF file that is in memory.
 *
 * @name   for errors
 * @bytes  the file; borrowed until elf_file_close()
 * @ret    release with elf_file_close(), also after a failure
 *
 * Returns 0, -PTVM_BAD_INPUT when it is not ELF for x86 or -PTVM_NO_MEMORY.
 */
int elf_file_read(const char *name, struct bytes bytes, struct elf_file *ret,
		  struct ptvm_error *error);

/** The bytes of the string table in section `index`; empty where that section is none. They live as
 * long as `file`, and need not end with a NUL. */
struct bytes elf_file_strings(const struct elf_file *file, size_t index);

/** Whether there is a full symbol table (not only the dynamic one). */
bool elf_file_has_symtab(const struct elf_file *file);

/** How symbols are numbered. */
enum elf_space {
	ELF_ADDRESSES, /* st_value */
	ELF_OFFSETS,   /* offset in the file that `layout` is, as perf does for programs */
};

/**
 * Append the functions and objects of the symbol table, or without one of the dynamic symbol
 * table. Their names go with them, in a copy of the whole string table: copied one by one, names
 * that share a long string would take any amount of memory.
 *
 * @layout  whose segments turn addresses into offsets: the file itself, or the program that
 *          this is the debug file of
 *
 * Returns 0 or -PTVM_NO_MEMORY. The table is not finished.
 */
int elf_file_symbols(const struct elf_file *file, enum elf_space space,
		     const struct elf_file *layout, struct symbols *ret);

/** Release what elf_file_read() made (not the bytes). */
void elf_file_close(struct elf_file *file);
