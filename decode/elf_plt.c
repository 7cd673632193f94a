#include "decode/elf_plt.h"

#include <gelf.h>
#include <libelf.h>
#include <string.h>

enum { MAX_STUB = 64 }; /* bytes; x86 has 8 and 16 */

static Elf_Scn *section_named(const struct elf_file *file, const char *name, GElf_Shdr *ret)
{
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return NULL;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
		const char *found = NULL;

		if (gelf_getshdr(section, ret))
			found = elf_strptr(file->elf, names, ret->sh_name);
		if (found && !strcmp(found, name))
			return section;
	}
	return NULL;
}

static int add_stub(struct symbols *symbols, const char *name, uint64_t start, uint64_t size)
{
	size_t length = strlen(name);
	char *text = arena_alloc(&symbols->names, length + sizeof("@plt"));

	if (!text)
		return -PTVM_NO_MEMORY;
	memcpy(text, name, length);
	memcpy(text + length, "@plt", sizeof("@plt"));
	return symbols_add(symbols, &(struct symbol){
					    .start = start,
					    .end = start + size,
					    .name = text,
					    .is_global = true,
				    });
}

/* The name of the dynamic symbol that a relocation is for; "" for one of none. */
static const char *target_name(const struct elf_file *file, Elf_Data *relocations, size_t index,
			       Elf_Data *symbols, size_t strings)
{
	GElf_Rela relocation;
	GElf_Sym symbol;

	if (!gelf_getrela(relocations, (int)index, &relocation) ||
	    !gelf_getsym(symbols, (int)GELF_R_SYM(relocation.r_info), &symbol))
		return NULL;
	return elf_strptr(file->elf, strings, symbol.st_name);
}

int elf_plt_symbols(const struct elf_file *file, struct symbols *ret)
{
	GElf_Shdr plt, table, dynamic;
	Elf_Scn *relocation_section = section_named(file, ".rela.plt", &table);
	Elf_Scn *symbol_section = section_named(file, ".dynsym", &dynamic);
	Elf_Data *relocations, *symbols;
	size_t count;

	if (!relocation_section || !symbol_section || !section_named(file, ".plt", &plt) ||
	    !plt.sh_entsize || plt.sh_entsize > MAX_STUB || plt.sh_offset > file->bytes.size)
		return 0;
	relocations = elf_getdata(relocation_section, NULL);
	symbols = elf_getdata(symbol_section, NULL);
	if (!relocations || !symbols)
		return 0;
	count = relocations->d_size / gelf_fsize(file->elf, ELF_T_RELA, 1, EV_CURRENT);
	for (size_t i = 0; i < count && i + 1 < plt.sh_size / plt.sh_entsize; i++) {
		const char *name = target_name(file, relocations, i, symbols, dynamic.sh_link);

		if (name &&
		    add_stub(ret, name, plt.sh_offset + (i + 1) * plt.sh_entsize, plt.sh_entsize))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}
