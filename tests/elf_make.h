/* A small kcore for tests: an ELF core file with loadable segments, as perf copies it. Or a
 * vmlinux: the same with symbols. */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct elf_make_segment {
	uint64_t address;
	const void *bytes;
	size_t size;
};

/** Write the file to `ret`, which must be large enough; returns its size. */
static inline size_t elf_make(const struct elf_make_segment *segments, size_t count, uint8_t *ret)
{
	Elf64_Ehdr header = { .e_ident = ELFMAG,
			      .e_type = ET_CORE,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(header),
			      .e_ehsize = sizeof(header),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = (uint16_t)count };
	size_t at = sizeof(header) + count * sizeof(Elf64_Phdr);

	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	header.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(ret, &header, sizeof(header));
	for (size_t i = 0; i < count; i++) {
		Elf64_Phdr program = { .p_type = PT_LOAD,
				       .p_flags = PF_R | PF_X,
				       .p_offset = at,
				       .p_vaddr = segments[i].address,
				       .p_filesz = segments[i].size,
				       .p_memsz = segments[i].size };

		memcpy(ret + sizeof(header) + i * sizeof(program), &program, sizeof(program));
		memcpy(ret + at, segments[i].bytes, segments[i].size);
		at += segments[i].size;
	}
	return at;
}

struct elf_make_symbol {
	const char *name;
	uint64_t address, size;
};

/** As elf_make(), with a table of functions. */
static inline size_t elf_make_symbols(const struct elf_make_segment *segments, size_t count,
				      const struct elf_make_symbol *symbols, size_t symbol_count,
				      uint8_t *ret)
{
	size_t at = (elf_make(segments, count, ret) + 7) & ~(size_t)7;
	size_t strings_size = 1, strings = at + (symbol_count + 1) * sizeof(Elf64_Sym);
	Elf64_Shdr sections[3] = { { 0 } };
	Elf64_Ehdr header;

	memset(ret + at, 0, sizeof(Elf64_Sym));
	ret[strings] = 0;
	for (size_t i = 0; i < symbol_count; i++) {
		const Elf64_Sym symbol = { .st_name = (uint32_t)strings_size,
					   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					   .st_shndx = 1,
					   .st_value = symbols[i].address,
					   .st_size = symbols[i].size };

		memcpy(ret + at + (i + 1) * sizeof(symbol), &symbol, sizeof(symbol));
		strcpy((char *)ret + strings + strings_size, symbols[i].name);
		strings_size += strlen(symbols[i].name) + 1;
	}
	sections[1] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
				    .sh_offset = at,
				    .sh_size = strings - at,
				    .sh_entsize = sizeof(Elf64_Sym),
				    .sh_link = 2 };
	sections[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
				    .sh_offset = strings,
				    .sh_size = strings_size };
	at = (strings + strings_size + 7) & ~(size_t)7;
	memcpy(ret + at, sections, sizeof(sections));
	memcpy(&header, ret, sizeof(header));
	header.e_type = ET_EXEC;
	header.e_shoff = at;
	header.e_shentsize = sizeof(Elf64_Shdr);
	header.e_shnum = 3;
	header.e_shstrndx = 2;
	memcpy(ret, &header, sizeof(header));
	return at + sizeof(sections);
}
