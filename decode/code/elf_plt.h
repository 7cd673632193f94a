/* Names for the stubs of a procedure linkage table, which have no symbols of their own. */
#pragma once

#include "decode/code/elf_file.h"
#include "decode/code/symbols.h"

/**
 * Append "NAME@plt" for every stub of .plt, by offset in the file. The stubs are in the order of
 * the relocations in .rela.plt; the first one calls the dynamic linker and has no relocation.
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int elf_plt_symbols(const struct elf_file *file, struct symbols *ret);
