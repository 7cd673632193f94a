#include "guest/kcore_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEADERS = 5, NOTES_AT = 0x400, NOTES_BYTES = 2 * VMCOREINFO_BYTES };

/* The beginning of a kcore. */
static struct file {
	Elf64_Ehdr head;
	Elf64_Phdr headers[HEADERS];
	uint8_t gap[NOTES_AT - sizeof(Elf64_Ehdr) - HEADERS * sizeof(Elf64_Phdr)];
	uint8_t notes[NOTES_BYTES];
} file;

static struct kcore_head head;
static size_t notes_used;

static int set_up(void **state)
{
	memset(&file, 0, sizeof(file));
	memset(&head, 0xff, sizeof(head));
	notes_used = 0;
	file.head = kcore_head_make(0);
	return 0;
}

static int tear_down(void **state)
{
	kcore_head_free(&head);
	return 0;
}

static void add_header(uint32_t type, uint64_t address, uint64_t offset, uint64_t size)
{
	file.headers[file.head.e_phnum++] = (Elf64_Phdr){
		.p_type = type, .p_vaddr = address, .p_offset = offset, .p_filesz = size
	};
}

static void add_padded(const void *content, size_t size)
{
	const size_t padded = (size + 3) & ~(size_t)3;

	assert_true(padded <= NOTES_BYTES - notes_used);
	memcpy(file.notes + notes_used, content, size);
	notes_used += padded;
}

static void add_note(const char *name, size_t name_size, const char *content, size_t size)
{
	const Elf64_Nhdr note = { (Elf64_Word)name_size, (Elf64_Word)size, 0 };

	add_padded(&note, sizeof(note));
	add_padded(name, name_size);
	add_padded(content, size);
}

static int read_first(size_t size)
{
	/* Not aligned more than needed, and with nothing that may be read behind it. */
	uint8_t *copy = malloc(size ? size : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, &file, size);
	r = kcore_head_read((struct bytes){ copy, size }, &head, NULL);
	free(copy);
	return r;
}

static void assert_refused(size_t size)
{
	assert_int_equal(read_first(size), -PTVM_BAD_INPUT);
	kcore_head_free(&head);
}

static void assert_segment(size_t i, uint64_t address, uint64_t offset, uint64_t size)
{
	assert_int_equal(head.segments.items[i].address, address);
	assert_int_equal(head.segments.items[i].offset, offset);
	assert_int_equal(head.segments.items[i].size, size);
}

static void segments_are_read_wherever_in_the_file_they_are(void **state)
{
	add_header(PT_LOAD, 0xffffffff96000000, 0x7fffff602000, 0x2000000);
	add_header(PT_LOAD, 0xffff888000001000, 0x888000003000, 0x9e000);
	assert_int_equal(read_first(sizeof(file)), 0);
	assert_int_equal(head.segments.count, 2);
	assert_segment(0, 0xffffffff96000000, 0x7fffff602000, 0x2000000);
	assert_segment(1, 0xffff888000001000, 0x888000003000, 0x9e000);
	assert_string_equal(head.vmcoreinfo, "");
}

static void they_say_where_in_ram_they_are(void **state)
{
	add_header(PT_LOAD, 0xffff888000001000, 0x888000003000, 0x9e000);
	file.headers[0].p_paddr = 0x1000;
	assert_int_equal(read_first(sizeof(file)), 0);
	assert_int_equal(head.segments.items[0].physical, 0x1000);
}

static void a_file_without_segments_has_none(void **state)
{
	assert_int_equal(read_first(sizeof(file)), 0);
	assert_int_equal(head.segments.count, 0);
}

static void segments_that_cannot_be_are_left_out(void **state)
{
	add_header(PT_LOAD, 0x1000, 0x1000, 0);
	add_header(PT_LOAD, UINT64_MAX - 0xfff, 0x1000, 0x1000);
	add_header(PT_LOAD, 0x1000, UINT64_MAX - 0xfff, 0x1000);
	add_header(PT_DYNAMIC, 0x1000, 0x1000, 0x1000);
	add_header(PT_LOAD, UINT64_MAX - 0x1000, UINT64_MAX - 0x1000, 0x1000);
	assert_int_equal(read_first(sizeof(file)), 0);
	assert_int_equal(head.segments.count, 1);
	assert_segment(0, UINT64_MAX - 0x1000, UINT64_MAX - 0x1000, 0x1000);
}

static void only_core_files_of_x86_64_are_read(void **state)
{
	const Elf64_Ehdr good = file.head;

	file.head.e_type = ET_DYN;
	assert_refused(sizeof(file));
	file.head = good;
	file.head.e_machine = EM_AARCH64;
	assert_refused(sizeof(file));
	file.head = good;
	file.head.e_ident[EI_CLASS] = ELFCLASS32;
	assert_refused(sizeof(file));
	file.head = good;
	file.head.e_ident[0] = 'E';
	assert_refused(sizeof(file));
	file.head = good;
	assert_int_equal(read_first(sizeof(file)), 0);
}

static void a_file_that_ends_in_its_headers_is_refused(void **state)
{
	struct ptvm_error error = { 0 };

	add_header(PT_LOAD, 0x1000, 0x1000, 0x1000);
	add_header(PT_LOAD, 0x3000, 0x3000, 0x1000);
	for (size_t size = 0; size < sizeof(file.head); size += 3)
		assert_refused(size);
	assert_refused(sizeof(file.head) + 2 * sizeof(Elf64_Phdr) - 1);
	assert_int_equal(kcore_head_read((struct bytes){ (uint8_t *)&file, 8 }, &head, &error),
			 -PTVM_BAD_INPUT);
	assert_string_equal(error.message, "/proc/kcore: not a core file of x86-64");
	assert_int_equal(read_first(sizeof(file.head) + 2 * sizeof(Elf64_Phdr)), 0);
}

static void vmcoreinfo_is_found_among_the_notes(void **state)
{
	add_note("CORE", 5, "abcdef", 6);
	add_note("VMCOREINFO_X", 13, "wrong", 5);
	add_note("VMCOREINFO", 10, "no NUL", 6);
	add_note("VMCOREINFO", 11, "OSRELEASE=6.1\n", 14);
	add_note("VMCOREINFX", 11, "x", 1);
	add_header(PT_NOTE, 0, NOTES_AT, notes_used);
	assert_int_equal(read_first(sizeof(file)), 0);
	assert_string_equal(head.vmcoreinfo, "OSRELEASE=6.1\n");
	assert_int_equal(head.segments.count, 0);
}

static void the_last_of_two_counts(void **state)
{
	add_note("VMCOREINFO", 11, "OSRELEASE=6.1\n", 14);
	add_note("VMCOREINFO", 11, "short", 5);
	add_header(PT_NOTE, 0, NOTES_AT, notes_used);
	assert_int_equal(read_first(sizeof(file)), 0);
	assert_string_equal(head.vmcoreinfo, "short");
}

static void what_looks_like_notes_is_none(void **state)
{
	add_note("VMCOREINFO", 11, "OSRELEASE=6.1\n", 14);
	add_header(PT_LOAD, 0x1000, NOTES_AT, notes_used);
	assert_int_equal(read_first(sizeof(file)), 0);
	assert_string_equal(head.vmcoreinfo, "");
}

static void a_long_vmcoreinfo_is_cut(void **state)
{
	char content[VMCOREINFO_BYTES + 100];

	memset(content, 'x', sizeof(content));
	add_note("VMCOREINFO", 11, content, sizeof(content));
	add_header(PT_NOTE, 0, NOTES_AT, notes_used);
	assert_int_equal(read_first(sizeof(file)), 0);
	assert_int_equal(strlen(head.vmcoreinfo), VMCOREINFO_BYTES);
}

/* No more than a part of the file is at hand. */
static void notes_that_are_not_there_tell_nothing(void **state)
{
	add_note("VMCOREINFO", 11, "x", 1);
	add_header(PT_NOTE, 0, UINT64_MAX - 8, notes_used);
	add_header(PT_NOTE, 0, NOTES_AT, UINT64_MAX);
	add_header(PT_NOTE, 0, NOTES_AT, sizeof(file) - NOTES_AT + 4);
	add_header(PT_NOTE, 0, NOTES_AT, notes_used - 4);
	assert_int_equal(read_first(sizeof(file)), 0);
	assert_string_equal(head.vmcoreinfo, "");
}

static void a_header_counts_those_behind_it(void **state)
{
	const Elf64_Ehdr made = kcore_head_make(0xfffe);

	assert_memory_equal(made.e_ident, ELFMAG, SELFMAG);
	assert_int_equal(made.e_phnum, 0xfffe);
	assert_int_equal(made.e_phoff, sizeof(made));
	assert_int_equal(made.e_phentsize, sizeof(Elf64_Phdr));
	assert_int_equal(made.e_ehsize, sizeof(made));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(segments_are_read_wherever_in_the_file_they_are),
		TEST(they_say_where_in_ram_they_are),
		TEST(a_file_without_segments_has_none),
		TEST(segments_that_cannot_be_are_left_out),
		TEST(only_core_files_of_x86_64_are_read),
		TEST(a_file_that_ends_in_its_headers_is_refused),
		TEST(vmcoreinfo_is_found_among_the_notes),
		TEST(the_last_of_two_counts),
		TEST(what_looks_like_notes_is_none),
		TEST(a_long_vmcoreinfo_is_cut),
		TEST(notes_that_are_not_there_tell_nothing),
		cmocka_unit_test(a_header_counts_those_behind_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
