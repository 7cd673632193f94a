#include "decode/code/elf_plt.h"

#include <gelf.h>
#include <libelf.h>
#include <string.h>

enum { MAX_STUB = 64 }; /* bytes; x86 has 8 and 16 */

static Elf_Scn *section_named(const struct elf_file *file, const char *name, GElf_Shdr *ret)
{
	size_t index, size = strlen(name) + 1;
	struct bytes names, found;

	if (elf_getshdrstrndx(file->elf, &index))
		return NULL;
	names = elf_file_strings(file, index);
	for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
		if (!gelf_getshdr(section, ret))
			continue;
		found = bytes_slice(names, ret->sh_name, size);
		if (found.size == size && !memcmp(found.data, name, size))
			return section;
	}
	return NULL;
}

static int add_stub(struct symbols *symbols, struct bytes name, uint64_t start, uint64_t size)
{
	char *text = arena_alloc(&symbols->names, name.size + sizeof("@plt"));

	if (!text)
		return -PTVM_NO_MEMORY;
	memcpy(text, name.data, name.size);
	memcpy(text + name.size, "@plt", sizeof("@plt"));
	return symbols_add(symbols, &(struct symbol){
					    .start = start,
					    .end = start + size,
					    .name = text,
					    .is_global = true,
				    });
}

/* The name of the dynamic symbol that a relocation is for: bytes of `strings`, none of them if it
 * is for no symbol, and no data if it is damaged. */
static struct bytes target_name(Elf_Data *relocations, size_t index, Elf_Data *symbols,
				struct bytes strings)
{
	GElf_Rela relocation;
	struct bytes name;
	GElf_Sym symbol;

	if (!gelf_getrela(relocations, (int)index, &relocation) ||
	    !gelf_getsym(symbols, (int)GELF_R_SYM(relocation.r_info), &symbol))
		return (struct bytes){ NULL, 0 };
	name = bytes_slice(strings, symbol.st_name, strings.size);
	name.size = name.size ? strnlen((const char *)name.data, name.size) : 0;
	return name;
}

int elf_plt_symbols(const struct elf_file *file, struct symbols *ret)
{
	GElf_Shdr plt, table, dynamic;
	Elf_Scn *relocation_section = section_named(file, ".rela.plt", &table);
	Elf_Scn *symbol_section = section_named(file, ".dynsym", &dynamic);
	/* A name is of one stub: all together are no longer than the file that has them. */
	size_t count, names_left = file->bytes.size;
	Elf_Data *relocations, *symbols;
	struct bytes strings;

	if (!relocation_section || !symbol_section || !section_named(file, ".plt", &plt) ||
	    !plt.sh_entsize || plt.sh_entsize > MAX_STUB || plt.sh_offset > file->bytes.size)
		return 0;
	relocations = elf_getdata(relocation_section, NULL);
	symbols = elf_getdata(symbol_section, NULL);
	strings = elf_file_strings(file, dynamic.sh_link);
	if (!relocations || !symbols)
		return 0;
	count = relocations->d_size / gelf_fsize(file->elf, ELF_T_RELA, 1, EV_CURRENT);
	for (size_t i = 0; i < count && i + 1 < plt.sh_size / plt.sh_entsize; i++) {
		struct bytes name = target_name(relocations, i, symbols, strings);

		if (name.size > names_left)
			break;
		names_left -= name.size;
		if (name.data &&
		    add_stub(ret, name, plt.sh_offset + (i + 1) * plt.sh_entsize, plt.sh_entsize))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}
