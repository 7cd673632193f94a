#include "guest/memory_kcore.h"

#include <elf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "guest/guest_kernel.h"
#include "guest/kcore_head.h"

enum {
	PAGE = 4096,
	NOTE_NAME_BYTES = 12, /* "VMCOREINFO", padded */
	NOTE_BYTES = sizeof(Elf64_Nhdr) + NOTE_NAME_BYTES + VMCOREINFO_BYTES,
	MOST_PIECES = (KCORE_HEAD_BYTES - PAGE - NOTE_BYTES) / sizeof(Elf64_Phdr),
};

static int find_labels(const struct guest_kernel *kernel, struct code_ranges *ret)
{
	uint64_t start = guest_kernel_symbol(kernel, "__start___jump_table");
	uint64_t end = guest_kernel_symbol(kernel, "__stop___jump_table");

	return end > kernel->image_end ? 0 : code_ranges_add_labels(ret, start, end);
}

static int find_code(struct guest_kernel *kernel, struct code_ranges *ret, struct ptvm_error *error)
{
	uint64_t start = guest_kernel_symbol(kernel, "_stext");
	uint64_t end = guest_kernel_symbol(kernel, "_etext");
	int r;

	if (start < kernel->image.address || end <= start || end > kernel->image_end)
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "no kernel text from %#" PRIx64 " to %#" PRIx64, start, end);
	ret->kernel_start = start;
	r = code_ranges_add(ret, start, end);
	if (!r)
		r = find_labels(kernel, ret);
	if (!r)
		r = code_ranges_add_pages(ret, &kernel->walk, kernel->image_end, error);
	if (r)
		return r;
	code_ranges_join(ret);
	if (ret->count > MOST_PIECES)
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "the kernel has more than %d pieces of code", (int)MOST_PIECES);
	return 0;
}

/* Headers of the note and of each piece. */
static void add_headers(struct memory_kcore *kcore)
{
	size_t count = kcore->code.count + 1;
	const Elf64_Ehdr file = kcore_head_make(count);
	Elf64_Phdr header = { .p_type = PT_NOTE,
			      .p_offset = sizeof(file) + count * sizeof(header),
			      .p_filesz = NOTE_BYTES };
	uint64_t offset = KCORE_HEAD_BYTES;

	text_add(&kcore->head, (const char *)&file, sizeof(file));
	text_add(&kcore->head, (const char *)&header, sizeof(header));
	for (size_t i = 0; i < kcore->code.count; i++) {
		const struct code_range *range = &kcore->code.items[i];

		header = (Elf64_Phdr){ .p_type = PT_LOAD,
				       .p_offset = offset,
				       .p_vaddr = range->start,
				       .p_filesz = range->end - range->start };
		offset += header.p_filesz;
		text_add(&kcore->head, (const char *)&header, sizeof(header));
	}
}

/* What the kernel keeps for crash dumps, where a variable points to it; empty where none does. */
static void add_note(struct guest_kernel *kernel, struct text *head)
{
	const char name[NOTE_NAME_BYTES] = "VMCOREINFO";
	char content[VMCOREINFO_BYTES + 1];
	Elf64_Nhdr note = { .n_namesz = sizeof("VMCOREINFO") };

	(void)guest_kernel_vmcoreinfo(kernel, content, NULL);
	note.n_descsz = (Elf64_Word)strlen(content);
	text_add(head, (const char *)&note, sizeof(note));
	text_add(head, name, sizeof(name));
	text_add(head, content, VMCOREINFO_BYTES);
}

int memory_kcore_make(struct guest_kernel *kernel, struct memory_kcore *ret,
		      struct ptvm_error *error)
{
	int r = find_code(kernel, &ret->code, error);

	if (r)
		return r;
	add_headers(ret);
	add_note(kernel, &ret->head);
	while (ret->head.size < KCORE_HEAD_BYTES && !ret->head.failed)
		text_putc(&ret->head, '\0');
	return ret->head.failed ? -PTVM_NO_MEMORY : 0;
}

/* What is copied of pages: code, and the table. Other data of the guest may lie around that, and is
 * its own affair. */
static struct code_range wanted_part(const struct code_ranges *code, const struct page_run *run)
{
	struct code_range ret = { run->address, run->address + run->size };

	if (page_run_is_code(run))
		return ret;
	if (ret.start < code->labels.start)
		ret.start = code->labels.start;
	if (ret.end > code->labels.end)
		ret.end = code->labels.end;
	return ret;
}

/* From `address` on what is wanted, and 0 for the rest. */
static int read_code(const struct code_ranges *code, struct guest_kernel *kernel, uint64_t address,
		     uint8_t *data, size_t size, struct ptvm_error *error)
{
	uint64_t at = address, end = address + size;
	struct code_range part;
	struct page_run run;
	int r;

	memset(data, 0, size);
	while ((r = page_walk_next(&kernel->walk, at, end, &run, error)) > 0) {
		at = run.address + run.size;
		part = wanted_part(code, &run);
		if (part.start < part.end)
			r = page_walk_read(&kernel->walk, part.start, data + (part.start - address),
					   part.end - part.start, error);
		if (r < 0)
			break;
	}
	return r;
}

static int read_piece(const struct memory_kcore *kcore, struct guest_kernel *kernel,
		      uint64_t offset, void *data, size_t size, struct ptvm_error *error)
{
	uint64_t length;
	int r;

	for (size_t i = 0; i < kcore->code.count; i++, offset -= length) {
		const struct code_range *range = &kcore->code.items[i];

		length = range->end - range->start;
		if (offset >= length)
			continue;
		if (size > length - offset)
			size = length - offset;
		r = read_code(&kcore->code, kernel, range->start + offset, data, size, error);
		return r ? r : (int)size;
	}
	return 0;
}

int memory_kcore_read(const struct memory_kcore *kcore, struct guest_kernel *kernel,
		      uint64_t offset, void *data, size_t size, struct ptvm_error *error)
{
	const struct bytes head = { (const uint8_t *)kcore->head.data, kcore->head.size };
	struct bytes part = bytes_slice(head, offset, size);

	if (offset >= head.size)
		return read_piece(kcore, kernel, offset - head.size, data, size, error);
	memcpy(data, part.data, part.size);
	return (int)part.size;
}

void memory_kcore_free(struct memory_kcore *kcore)
{
	text_free(&kcore->head);
	code_ranges_free(&kcore->code);
}
