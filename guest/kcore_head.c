#include "guest/kcore_head.h"

#include <gelf.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/vec.h"

static void elf_release(Elf **elf)
{
	(void)elf_end(*elf);
}

static int fail(struct ptvm_error *error)
{
	return ptvm_fail(error, PTVM_BAD_INPUT, "/proc/kcore: not a core file of x86-64");
}

static void read_vmcoreinfo(const char *text, size_t size, struct kcore_head *ret)
{
	if (size > VMCOREINFO_BYTES)
		size = VMCOREINFO_BYTES;
	memcpy(ret->vmcoreinfo, text, size);
	ret->vmcoreinfo[size] = '\0';
}

static void read_notes(Elf *elf, const GElf_Phdr *header, struct kcore_head *ret)
{
	static const char wanted[] = "VMCOREINFO";
	Elf_Data *data;
	GElf_Nhdr note;
	size_t at = 0, name, content;

	if (header->p_offset > KCORE_HEAD_BYTES || header->p_filesz > KCORE_HEAD_BYTES)
		return;
	data = elf_getdata_rawchunk(elf, (int64_t)header->p_offset, header->p_filesz, ELF_T_NHDR);
	while (data && (at = gelf_getnote(data, at, &note, &name, &content)))
		if (note.n_namesz == sizeof(wanted) &&
		    !memcmp((char *)data->d_buf + name, wanted, sizeof(wanted)))
			read_vmcoreinfo((char *)data->d_buf + content, note.n_descsz, ret);
}

static int read_header(Elf *elf, const GElf_Phdr *header, struct kcore_head *ret)
{
	struct kcore_segment segment = { header->p_vaddr, header->p_offset, header->p_filesz,
					 header->p_paddr };

	if (header->p_type == PT_NOTE)
		read_notes(elf, header, ret);
	if (header->p_type != PT_LOAD || !segment.size ||
	    segment.size > UINT64_MAX - segment.address ||
	    segment.size > UINT64_MAX - segment.offset)
		return 0;
	return vec_push(&ret->segments, segment) ? 0 : -PTVM_NO_MEMORY;
}

static bool is_core(Elf *elf)
{
	GElf_Ehdr header;

	return gelf_getehdr(elf, &header) && header.e_type == ET_CORE &&
	       header.e_machine == EM_X86_64 && header.e_ident[EI_CLASS] == ELFCLASS64;
}

int kcore_head_read(struct bytes bytes, struct kcore_head *ret, struct ptvm_error *error)
{
	_cleanup_(elf_release) Elf *elf = NULL;
	GElf_Phdr header;
	size_t count;
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	(void)elf_version(EV_CURRENT);
	/* Read-only by its contract with libelf, which takes no const. */
	elf = elf_memory((char *)(uintptr_t)bytes.data, bytes.size);
	if (!elf || !is_core(elf) || elf_getphdrnum(elf, &count))
		return fail(error);
	for (size_t i = 0; i < count && !r; i++) {
		if (!gelf_getphdr(elf, (int)i, &header))
			return fail(error);
		r = read_header(elf, &header, ret);
	}
	return r;
}

Elf64_Ehdr kcore_head_make(size_t count)
{
	return (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_CORE,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (Elf64_Half)count,
	};
}

void kcore_head_free(struct kcore_head *head)
{
	vec_free(&head->segments);
}
