/* A small kcore for tests: an ELF core file with loadable segments, as perf copies it. */
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
