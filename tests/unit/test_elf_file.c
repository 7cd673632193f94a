#include "decode/code/elf_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/mapped_file.h"
#include "tests/elf_make.h"

int main(void);

static const struct elf_make_segment segments[] = {
	{ 0xffffffff81000000, "kernel text", 11 },
	{ 0xffffffffc0000000, "module", 6 },
};

static int read_cut(size_t cut, struct elf_file *ret)
{
	uint8_t bytes[1024];
	size_t size = elf_make(segments, 2, bytes);
	uint8_t *copy = malloc(size - cut);

	memcpy(copy, bytes, size - cut);
	return elf_file_read("test", (struct bytes){ copy, size - cut }, ret, NULL);
}

static void done(struct elf_file *file)
{
	free((void *)file->bytes.data);
	elf_file_close(file);
}

static void all_segments_of_a_kcore_are_found(void **state)
{
	struct elf_file file;

	assert_int_equal(read_cut(0, &file), 0);
	assert_int_equal(file.type, ET_CORE);
	assert_int_equal(file.segments.count, 2);
	assert_int_equal(file.cut_segments, 0);
	assert_true(file.segments.items[1].address == 0xffffffffc0000000);
	assert_memory_equal(file.bytes.data + file.segments.items[1].offset, "module", 6);
	done(&file);
}

static void a_segment_is_used_as_far_as_the_file_has_it(void **state)
{
	struct elf_file file;

	assert_int_equal(read_cut(2, &file), 0);
	assert_int_equal(file.segments.count, 2);
	assert_int_equal(file.segments.items[1].size, 4);
	assert_int_equal(file.cut_segments, 1);
	done(&file);
}

static void a_file_cut_anywhere_does_no_harm(void **state)
{
	uint8_t bytes[1024];
	size_t size = elf_make(segments, 2, bytes);

	for (size_t cut = 0; cut < size; cut++) {
		struct elf_file file;

		(void)read_cut(cut, &file);
		for (size_t i = 0; i < file.segments.count; i++)
			assert_true(file.segments.items[i].offset + file.segments.items[i].size <=
				    size - cut);
		done(&file);
	}
}

static void what_is_not_elf_for_x86_is_refused(void **state)
{
	struct ptvm_error error = { 0 };
	struct elf_file file;
	uint8_t bytes[1024];
	size_t size = elf_make(segments, 2, bytes);

	bytes[18] = EM_AARCH64;
	assert_int_equal(elf_file_read("test", (struct bytes){ bytes, size }, &file, &error),
			 -PTVM_BAD_INPUT);
	elf_file_close(&file);
	assert_int_equal(elf_file_read("test", (struct bytes){ NULL, 0 }, &file, NULL),
			 -PTVM_BAD_INPUT);
	elf_file_close(&file);
	memset(bytes, 'x', size);
	assert_int_equal(elf_file_read("test", (struct bytes){ bytes, size }, &file, NULL),
			 -PTVM_BAD_INPUT);
	elf_file_close(&file);
}

/* This test is a program with a symbol table: it must find itself in it. */
static void symbols_have_their_offset_in_the_file(void **state)
{
	struct symbols by_offset = { 0 }, by_address = { 0 };
	struct elf_file file;
	struct bytes bytes;
	uint64_t offset;

	assert_int_equal(mapped_file_open("/proc/self/exe", &bytes, NULL), 0);
	assert_int_equal(elf_file_read("self", bytes, &file, NULL), 0);
	if (!elf_file_has_symtab(&file))
		skip();
	assert_int_equal(elf_file_symbols(&file, ELF_OFFSETS, &file, &by_offset), 0);
	assert_int_equal(elf_file_symbols(&file, ELF_ADDRESSES, &file, &by_address), 0);
	assert_int_equal(symbols_finish(&by_offset, false), 0);
	assert_int_equal(symbols_finish(&by_address, false), 0);
	offset = symbols_address(&by_offset, "main");
	assert_true(offset && offset < bytes.size);
	assert_true(symbols_address(&by_address, "main"));
	/* The first bytes of code need no relocation: memory and file agree. */
	assert_memory_equal(bytes.data + offset, (const void *)(uintptr_t)&main, 4);
	elf_file_close(&file);
	symbols_free(&by_offset);
	symbols_free(&by_address);
	mapped_file_close(&bytes);
}

/* The symbols of a file with two functions, the second of which has its name at `second_name`, in
 * a string table of `strings_size` bytes; 0: all of them. */
static void read_names(uint32_t second_name, uint64_t strings_size, struct symbols *ret)
{
	const struct elf_make_symbol functions[] = { { "one", 0x1000, 16 }, { "two", 0x1010, 16 } };
	uint8_t bytes[1024];
	size_t size = elf_make_symbols(segments, 2, functions, 2, bytes);
	struct elf_file file;
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];

	memcpy(&header, bytes, sizeof(header));
	memcpy(sections, bytes + header.e_shoff, sizeof(sections));
	memcpy(bytes + sections[1].sh_offset + 2 * sizeof(Elf64_Sym), &second_name,
	       sizeof(second_name));
	if (strings_size)
		sections[2].sh_size = strings_size;
	memcpy(bytes + header.e_shoff, sections, sizeof(sections));
	assert_int_equal(elf_file_read("test", (struct bytes){ bytes, size }, &file, NULL), 0);
	assert_int_equal(elf_file_symbols(&file, ELF_ADDRESSES, &file, ret), 0);
	elf_file_close(&file);
}

/* Else a small file could ask for any amount of memory. */
static void symbols_of_one_name_share_it(void **state)
{
	struct symbols symbols = { 0 };

	read_names(2, 0, &symbols);
	assert_int_equal(symbols.count, 2);
	assert_string_equal(symbols.items[0].name, "one");
	assert_ptr_equal(symbols.items[1].name, symbols.items[0].name + 1);
	symbols_free(&symbols);
}

static void names_outside_of_the_string_table_are_none(void **state)
{
	struct symbols symbols = { 0 };

	read_names(5, 4, &symbols); /* it ends with "one", without its NUL */
	assert_int_equal(symbols.count, 1);
	assert_string_equal(symbols.items[0].name, "one");
	symbols_free(&symbols);
}

/* A file whose program headers name the same notes several times, and then those with the build
 * id. */
static struct build_id search_notes(unsigned times)
{
	enum { JUNK = 2048 };
	static const struct {
		Elf64_Nhdr header;
		char name[4], id[4];
	} note = { { 4, 4, NT_GNU_BUILD_ID }, "GNU", "abcd" };
	static uint8_t bytes[4096 + JUNK];
	struct elf_make_segment empty[8];
	Elf64_Phdr program = { .p_type = PT_NOTE, .p_filesz = JUNK };
	struct elf_file file;
	struct build_id id;
	size_t at;

	for (unsigned i = 0; i <= times; i++)
		empty[i] = (struct elf_make_segment){ .bytes = "" };
	at = program.p_offset = elf_make(empty, times + 1, bytes);
	memset(bytes + at, 0, JUNK);
	memcpy(bytes + at + JUNK, &note, sizeof(note));
	for (unsigned i = 0; i < times; i++)
		memcpy(bytes + sizeof(Elf64_Ehdr) + i * sizeof(program), &program, sizeof(program));
	program.p_offset = at + JUNK;
	program.p_filesz = sizeof(note);
	memcpy(bytes + sizeof(Elf64_Ehdr) + times * sizeof(program), &program, sizeof(program));
	assert_int_equal(elf_file_read("test", (struct bytes){ bytes, at + JUNK + sizeof(note) },
				       &file, NULL),
			 0);
	id = file.build_id;
	elf_file_close(&file);
	return id;
}

/* Else a small file could take hours. */
static void no_more_notes_are_read_than_the_file_has(void **state)
{
	struct build_id id = search_notes(1);

	assert_int_equal(id.size, 4);
	assert_memory_equal(id.bytes, "abcd", 4);
	assert_int_equal(search_notes(6).size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_segments_of_a_kcore_are_found),
		cmocka_unit_test(a_segment_is_used_as_far_as_the_file_has_it),
		cmocka_unit_test(a_file_cut_anywhere_does_no_harm),
		cmocka_unit_test(what_is_not_elf_for_x86_is_refused),
		cmocka_unit_test(symbols_have_their_offset_in_the_file),
		cmocka_unit_test(symbols_of_one_name_share_it),
		cmocka_unit_test(names_outside_of_the_string_table_are_none),
		cmocka_unit_test(no_more_notes_are_read_than_the_file_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
