#include "decode/code/elf_file.h"

#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "decode/base/vec.h"

static int read_segments(struct elf_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return 0;
	for (size_t i = 0; i < count; i++) {
		struct bytes in_file;
		GElf_Phdr header;

		if (!gelf_getphdr(file->elf, (int)i, &header))
			break;
		if (header.p_type != PT_LOAD || !header.p_filesz)
			continue;
		if (file->segments.count == ELF_MAX_SEGMENTS) {
			file->cut_segments++;
			break;
		}
		in_file = bytes_slice(file->bytes, header.p_offset, header.p_filesz);
		file->cut_segments += in_file.size < header.p_filesz;
		if (in_file.size && !vec_push(&file->segments,
					      (struct elf_segment){ header.p_vaddr, header.p_offset,
								    in_file.size, header.p_flags }))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

/* Look for the build id in notes. Notes do not overlap, so that all together are no longer than the
 * file: what is beyond `*left` bytes is made up, and would take for ever. */
static void search_notes(struct elf_file *file, uint64_t offset, uint64_t size, uint64_t *left)
{
	struct bytes notes = bytes_slice(file->bytes, offset, size < *left ? size : *left);

	*left -= notes.size;
	if (!file->build_id.size)
		(void)build_id_find(notes, &file->build_id);
}

static void search_sections(struct elf_file *file)
{
	uint64_t left = file->bytes.size;

	for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type == SHT_NOTE)
			search_notes(file, header.sh_offset, header.sh_size, &left);
	}
}

static void search_segments(struct elf_file *file)
{
	uint64_t left = file->bytes.size;
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return;
	for (size_t i = 0; i < count && gelf_getphdr(file->elf, (int)i, &header); i++)
		if (header.p_type == PT_NOTE)
			search_notes(file, header.p_offset, header.p_filesz, &left);
}

/* Debug files keep the note as a section, while their segments' bytes are gone. */
static void read_build_id(struct elf_file *file)
{
	search_sections(file);
	search_segments(file);
}

int elf_file_read(const char *name, struct bytes bytes, struct elf_file *ret,
		  struct ptvm_error *error)
{
	GElf_Ehdr header;

	*ret = (struct elf_file){ .bytes = bytes };
	if (elf_version(EV_CURRENT) == EV_NONE)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: libelf is too old", name);
	/* libelf takes no const, but does not write to what it reads. */
	if (bytes.size > EI_NIDENT)
		ret->elf = elf_memory((char *)bytes.data, bytes.size);
	if (!ret->elf || elf_kind(ret->elf) != ELF_K_ELF || !gelf_getehdr(ret->elf, &header))
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: not an ELF file", name);
	if (header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (header.e_machine != EM_X86_64 && header.e_machine != EM_386))
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: not an ELF file for x86", name);
	ret->type = header.e_type;
	if (read_segments(ret))
		return -PTVM_NO_MEMORY;
	read_build_id(ret);
	return 0;
}

static Elf_Scn *section_of_type(const struct elf_file *file, uint32_t type, GElf_Shdr *ret)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));)
		if (gelf_getshdr(section, ret) && ret->sh_type == type && ret->sh_size)
			return section;
	return NULL;
}

struct bytes elf_file_strings(const struct elf_file *file, size_t index)
{
	Elf_Scn *section = elf_getscn(file->elf, index);
	Elf_Data *data = NULL;
	GElf_Shdr header;

	if (section && gelf_getshdr(section, &header) && header.sh_type == SHT_STRTAB)
		data = elf_getdata(section, NULL);
	return data && data->d_buf ? (struct bytes){ data->d_buf, data->d_size }
				   : (struct bytes){ NULL, 0 };
}

bool elf_file_has_symtab(const struct elf_file *file)
{
	GElf_Shdr header;

	return section_of_type(file, SHT_SYMTAB, &header);
}

/* The symbols perf shows: functions, objects, and labels that others can see. */
static bool is_shown(const GElf_Sym *symbol)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);
	unsigned visibility = GELF_ST_VISIBILITY(symbol->st_other);

	if (!symbol->st_name || symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return false;
	if (type == STT_NOTYPE)
		return visibility != STV_HIDDEN && visibility != STV_INTERNAL;
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT;
}

static bool to_offset(const struct elf_file *layout, uint64_t *value)
{
	for (size_t i = 0; i < layout->segments.count; i++) {
		const struct elf_segment *segment = &layout->segments.items[i];

		if (*value - segment->address < segment->size) {
			*value += segment->offset - segment->address;
			return true;
		}
	}
	return false;
}

static int add_symbol(const GElf_Sym *from, const char *name, struct symbols *ret)
{
	const uint64_t value = from->st_value;
	const struct symbol symbol = {
		.start = value,
		.end = from->st_size <= UINT64_MAX - value ? value + from->st_size : value,
		.name = name,
		.is_global = GELF_ST_BIND(from->st_info) == STB_GLOBAL,
		.is_weak = GELF_ST_BIND(from->st_info) == STB_WEAK,
	};

	return symbols_add(ret, &symbol);
}

int elf_file_symbols(const struct elf_file *file, enum elf_space space,
		     const struct elf_file *layout, struct symbols *ret)
{
	GElf_Shdr header;
	Elf_Scn *section = section_of_type(file, SHT_SYMTAB, &header);
	struct bytes strings;
	const char *names;
	Elf_Data *data;
	size_t count;

	if (!section)
		section = section_of_type(file, SHT_DYNSYM, &header);
	data = section ? elf_getdata(section, NULL) : NULL;
	if (!data || !data->d_buf)
		return 0;
	strings = elf_file_strings(file, header.sh_link);
	if (!strings.size)
		return 0;
	names = arena_strndup(&ret->names, (const char *)strings.data, strings.size);
	if (!names)
		return -PTVM_NO_MEMORY;
	count = data->d_size / gelf_fsize(file->elf, ELF_T_SYM, 1, EV_CURRENT);
	for (size_t i = 0; i < count && i < ELF_MAX_SYMBOLS; i++) {
		GElf_Sym symbol;

		if (!gelf_getsym(data, (int)i, &symbol) || !is_shown(&symbol) ||
		    symbol.st_name >= strings.size || !names[symbol.st_name] ||
		    (space == ELF_OFFSETS && !to_offset(layout, &symbol.st_value)))
			continue;
		if (add_symbol(&symbol, names + symbol.st_name, ret))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

void elf_file_close(struct elf_file *file)
{
	if (file->elf)
		(void)elf_end(file->elf);
	vec_free(&file->segments);
	*file = (struct elf_file){ 0 };
}
