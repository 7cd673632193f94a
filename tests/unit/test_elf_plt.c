#include "decode/code/elf_plt.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STUB = 16, STUBS = 4, PLT_ADDRESS = 0x401000 };
enum { NONE, PLT, RELA, SYMBOLS, STRINGS, NAMES, SECTIONS };

/* A program that is nothing but a procedure linkage table: its stubs, what they are for, names. */
struct program {
	Elf64_Ehdr header;
	Elf64_Phdr load;
	uint8_t plt[STUB * STUBS]; /* the first stub is of another use */
	Elf64_Rela relocations[3];
	Elf64_Sym symbols[3];
	char strings[16], names[64];
	Elf64_Shdr sections[SECTIONS];
	char text[1024];
};

struct bench {
	struct program program;
	struct elf_file file;
	struct symbols symbols;
};

static uint32_t add_name(struct program *program, const char *name)
{
	static const size_t room = sizeof(program->names);
	size_t at = 1;

	while (at < room && program->names[at])
		at += strlen(program->names + at) + 1;
	assert_true(at + strlen(name) < room);
	strcpy(program->names + at, name);
	return (uint32_t)at;
}

static void add_section(struct program *program, unsigned index, const char *name, uint32_t type,
			size_t offset, size_t size, size_t entry_size, uint32_t link)
{
	program->sections[index] = (Elf64_Shdr){ .sh_name = add_name(program, name),
						 .sh_type = type,
						 .sh_offset = offset,
						 .sh_size = size,
						 .sh_entsize = entry_size,
						 .sh_link = link };
}

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct program *program = &bench->program;

	assert_non_null(bench);
	program->header = (Elf64_Ehdr){ .e_ident = ELFMAG,
					.e_type = ET_EXEC,
					.e_machine = EM_X86_64,
					.e_version = EV_CURRENT,
					.e_phoff = offsetof(struct program, load),
					.e_shoff = offsetof(struct program, sections),
					.e_ehsize = sizeof(Elf64_Ehdr),
					.e_phentsize = sizeof(Elf64_Phdr),
					.e_phnum = 1,
					.e_shentsize = sizeof(Elf64_Shdr),
					.e_shnum = SECTIONS,
					.e_shstrndx = NAMES };
	program->header.e_ident[EI_CLASS] = ELFCLASS64;
	program->header.e_ident[EI_DATA] = ELFDATA2LSB;
	program->header.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(program->strings, "\0open\0close", 11);
	program->symbols[1].st_name = 1;
	program->symbols[2].st_name = 6;
	/* of close, open and none */
	program->relocations[0].r_info = ELF64_R_INFO(2, R_X86_64_JUMP_SLOT);
	program->relocations[1].r_info = ELF64_R_INFO(1, R_X86_64_JUMP_SLOT);
	program->relocations[2].r_info = ELF64_R_INFO(0, R_X86_64_IRELATIVE);
	add_section(program, PLT, ".plt", SHT_PROGBITS, offsetof(struct program, plt),
		    sizeof(program->plt), STUB, 0);
	program->sections[PLT].sh_addr = PLT_ADDRESS;
	add_section(program, RELA, ".rela.plt", SHT_RELA, offsetof(struct program, relocations),
		    sizeof(program->relocations), sizeof(Elf64_Rela), SYMBOLS);
	add_section(program, SYMBOLS, ".dynsym", SHT_DYNSYM, offsetof(struct program, symbols),
		    sizeof(program->symbols), sizeof(Elf64_Sym), STRINGS);
	add_section(program, STRINGS, ".dynstr", SHT_STRTAB, offsetof(struct program, strings),
		    sizeof(program->strings), 0, 0);
	add_section(program, NAMES, ".shstrtab", SHT_STRTAB, offsetof(struct program, names),
		    sizeof(program->names), 0, 0);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	elf_file_close(&bench->file);
	symbols_free(&bench->symbols);
	free(bench);
	return 0;
}

/* How many stubs have names. */
static size_t read_plt(struct bench *bench)
{
	const struct bytes bytes = { (const uint8_t *)&bench->program, sizeof(bench->program) };

	assert_int_equal(elf_file_read("program", bytes, &bench->file, NULL), 0);
	assert_int_equal(elf_plt_symbols(&bench->file, &bench->symbols), 0);
	return bench->symbols.count;
}

static void assert_stub(const struct bench *bench, size_t index, unsigned stub, const char *name)
{
	const struct symbol *symbol = &bench->symbols.items[index];

	assert_string_equal(symbol->name, name);
	assert_int_equal(symbol->start, offsetof(struct program, plt) + stub * STUB);
	assert_int_equal(symbol->end, symbol->start + STUB);
	assert_true(symbol->is_global);
}

static void stubs_are_in_the_order_of_relocations(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_plt(bench), 3);
	assert_stub(bench, 0, 1, "close@plt");
	assert_stub(bench, 1, 2, "open@plt");
	assert_stub(bench, 2, 3, "@plt"); /* of a function chosen at run time */
}

static void names_are_added_to_those_that_are_there(void **state)
{
	struct bench *bench = *state;
	const struct symbol symbol = { .start = 1, .end = 2, .name = "main" };

	assert_int_equal(symbols_add(&bench->symbols, &symbol), 0);
	assert_int_equal(read_plt(bench), 4);
	assert_string_equal(bench->symbols.items[0].name, "main");
	assert_stub(bench, 1, 1, "close@plt");
}

static void a_program_without_a_table_has_no_stubs(void **state)
{
	static const unsigned needed[] = { PLT, RELA, SYMBOLS };

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		struct bench *bench;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		bench->program.sections[needed[i]].sh_name++;
		assert_int_equal(read_plt(bench), 0);
		assert_int_equal(tear_down(state), 0);
	}
}

static void without_names_of_sections_there_is_no_table(void **state)
{
	struct bench *bench = *state;

	bench->program.header.e_shstrndx = NONE;
	assert_int_equal(read_plt(bench), 0);
}

static void stubs_of_impossible_size_are_none(void **state)
{
	static const struct {
		uint64_t size;
		size_t stubs;
	} cases[] = { { 0, 0 }, { 8, 3 }, { 64, 2 }, { 65, 0 }, { UINT64_MAX, 0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench *bench;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		bench->program.sections[PLT].sh_size = 3 * 65;
		bench->program.sections[PLT].sh_entsize = cases[i].size;
		assert_int_equal(read_plt(bench), cases[i].stubs);
		assert_int_equal(tear_down(state), 0);
	}
}

static void there_are_no_more_stubs_than_fit(void **state)
{
	struct bench *bench = *state;

	bench->program.sections[PLT].sh_size = 3 * STUB - 1;
	assert_int_equal(read_plt(bench), 1);
}

/* What a damaged file says must not lead out of it. */
static void relocations_to_nowhere_have_no_stubs(void **state)
{
	struct bench *bench = *state;

	bench->program.relocations[0].r_info = ELF64_R_INFO(3, R_X86_64_JUMP_SLOT);
	bench->program.symbols[1].st_name = 10000;
	assert_int_equal(read_plt(bench), 1);
	assert_stub(bench, 0, 3, "@plt");
}

static void a_table_outside_of_the_file_has_no_stubs(void **state)
{
	struct bench *bench = *state;

	bench->program.sections[PLT].sh_offset = UINT64_MAX - STUB;
	assert_int_equal(read_plt(bench), 0);
}

static void symbols_outside_of_the_file_have_no_stubs(void **state)
{
	static const unsigned needed[] = { RELA, SYMBOLS };

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		struct bench *bench;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		bench->program.sections[needed[i]].sh_offset = sizeof(struct program);
		assert_int_equal(read_plt(bench), 0);
		assert_int_equal(tear_down(state), 0);
	}
}

/* Else a small file could ask for any amount of memory. */
static void names_are_no_longer_than_the_file(void **state)
{
	struct bench *bench = *state;
	struct program *program = &bench->program;

	memset(program->text, 'a', sizeof(program->text) - 1);
	program->sections[STRINGS].sh_offset = offsetof(struct program, text);
	program->sections[STRINGS].sh_size = sizeof(program->text);
	program->symbols[0].st_name = 1;
	assert_int_equal(read_plt(bench), 1);
	assert_int_equal(strlen(bench->symbols.items[0].name), sizeof(program->text) - 7 + 4);
}

/* If each looked for the end of its name, this would take minutes. */
static void thousands_of_sections_may_share_a_name_without_an_end(void **state)
{
	enum { COUNT = 60000, NAME_BYTES = 32 << 20 };
	const size_t size = sizeof(Elf64_Ehdr) + COUNT * sizeof(Elf64_Shdr) + NAME_BYTES;
	struct bench *bench = *state;
	Elf64_Ehdr *header = malloc(size);
	Elf64_Shdr *sections = (Elf64_Shdr *)(header + 1);

	assert_non_null(header);
	*header = bench->program.header;
	header->e_phnum = 0;
	header->e_shnum = COUNT;
	header->e_shoff = sizeof(*header);
	header->e_shstrndx = 1;
	for (unsigned i = 0; i < COUNT; i++)
		sections[i] = (Elf64_Shdr){ .sh_type = i == 1 ? SHT_STRTAB : SHT_PROGBITS,
					    .sh_offset = size - NAME_BYTES,
					    .sh_size = NAME_BYTES };
	memset(sections + COUNT, 'a', NAME_BYTES);
	assert_int_equal(elf_file_read("sections", (struct bytes){ (uint8_t *)header, size },
				       &bench->file, NULL),
			 0);
	assert_int_equal(elf_plt_symbols(&bench->file, &bench->symbols), 0);
	assert_int_equal(bench->symbols.count, 0);
	elf_file_close(&bench->file);
	free(header);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(stubs_are_in_the_order_of_relocations),
		WITH_FIXTURE(names_are_added_to_those_that_are_there),
		cmocka_unit_test(a_program_without_a_table_has_no_stubs),
		WITH_FIXTURE(without_names_of_sections_there_is_no_table),
		cmocka_unit_test(stubs_of_impossible_size_are_none),
		WITH_FIXTURE(there_are_no_more_stubs_than_fit),
		WITH_FIXTURE(relocations_to_nowhere_have_no_stubs),
		WITH_FIXTURE(a_table_outside_of_the_file_has_no_stubs),
		cmocka_unit_test(symbols_outside_of_the_file_have_no_stubs),
		WITH_FIXTURE(names_are_no_longer_than_the_file),
		WITH_FIXTURE(thousands_of_sections_may_share_a_name_without_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
