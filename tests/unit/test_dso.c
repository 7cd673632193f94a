#include "decode/code/dso.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

#include "tests/fake_tree.h"

enum { BASE = 0x400000, CODE = 16 };

/* A program that is nothing but a function, its symbol and a build id. */
struct program {
	Elf64_Ehdr header;
	Elf64_Phdr load, note;
	Elf64_Nhdr note_header;
	char note_name[4];
	uint8_t id[BUILD_ID_BYTES], code[CODE];
	Elf64_Sym symbols[2];
	char strings[16];
	Elf64_Shdr sections[3];
};

struct bench {
	struct fake_tree tree;
	struct dso_places places;
	struct dso dso;
	char note[512];
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	fake_tree_init(&bench->tree);
	bench->places.symfs = bench->tree.path;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	dso_unload(&bench->dso);
	fake_tree_deinit(&bench->tree);
	free(bench);
	return 0;
}

static struct build_id id_of(uint8_t first)
{
	struct build_id id = { .bytes = { first, 0xcd }, .size = BUILD_ID_BYTES };

	return id;
}

static void add_symbol(struct program *program, const char *name)
{
	program->header.e_shoff = offsetof(struct program, sections);
	program->header.e_shentsize = sizeof(Elf64_Shdr);
	program->header.e_shnum = 3;
	program->header.e_shstrndx = 2;
	(void)snprintf(program->strings + 1, sizeof(program->strings) - 1, "%s", name);
	program->symbols[1] = (Elf64_Sym){ .st_name = 1,
					   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					   .st_shndx = 1,
					   .st_value = BASE + offsetof(struct program, code),
					   .st_size = CODE };
	program->sections[1] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
					     .sh_offset = offsetof(struct program, symbols),
					     .sh_size = sizeof(program->symbols),
					     .sh_entsize = sizeof(Elf64_Sym),
					     .sh_link = 2 };
	program->sections[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					     .sh_offset = offsetof(struct program, strings),
					     .sh_size = sizeof(program->strings) };
}

/* Writes a program whose build id begins with `id`, with a symbol unless `symbol` is NULL. */
static void make_program(const struct bench *bench, const char *path, uint8_t id,
			 const char *symbol)
{
	struct program program = {
		.header = { .e_ident = ELFMAG,
			    .e_type = ET_EXEC,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = offsetof(struct program, load),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 2 },
		.load = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_vaddr = BASE,
			  .p_filesz = sizeof(program),
			  .p_memsz = sizeof(program) },
		.note = { .p_type = PT_NOTE,
			  .p_offset = offsetof(struct program, note_header),
			  .p_filesz = offsetof(struct program, code) -
				      offsetof(struct program, note_header) },
		.note_header = { 4, BUILD_ID_BYTES, NT_GNU_BUILD_ID },
		.note_name = "GNU",
	};

	program.header.e_ident[EI_CLASS] = ELFCLASS64;
	program.header.e_ident[EI_DATA] = ELFDATA2LSB;
	program.header.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(program.id, id_of(id).bytes, sizeof(program.id));
	if (symbol)
		add_symbol(&program, symbol);
	fake_tree_bytes(&bench->tree, &program, sizeof(program), path);
}

/* Writes one where a cache of files by build id has it, with this end of its name. */
static void make_cached(const struct bench *bench, const char *place, uint8_t id, const char *end,
			const char *symbol)
{
	char path[128], rest[2 * BUILD_ID_BYTES] = "";

	for (size_t i = 1; i < BUILD_ID_BYTES; i++)
		(void)snprintf(rest + 2 * i - 2, 3, "%02x", id_of(id).bytes[i]);
	(void)snprintf(path, sizeof(path), "%s.build-id/%02x/%s%s", place, id, rest, end);
	make_program(bench, path, id, symbol);
}

/* Loads it, and asserts that the function has this name, "" none; NULL: no file is to be found. */
static void assert_loads(struct bench *bench, const char *name, struct build_id id,
			 const char *symbol)
{
	const uint64_t function = offsetof(struct program, code);
	const struct symbol *found;

	dso_unload(&bench->dso);
	bench->dso = (struct dso){ .name = name, .build_id = id };
	dso_load(&bench->dso, &bench->places, bench->note, sizeof(bench->note));
	assert_int_equal(bench->dso.file.size != 0, symbol != NULL);
	if (!symbol)
		return;
	assert_string_equal(bench->note, "");
	found = symbols_find(&bench->dso.symbols, function + 1);
	assert_string_equal(found ? found->name : "", symbol);
	if (found)
		assert_int_equal(found->start, function);
}

static void a_file_is_found_by_its_path(void **state)
{
	struct bench *bench = *state;

	make_program(bench, "bin/it", 0xab, "here");
	assert_loads(bench, "/bin/it", (struct build_id){ .size = 0 }, "here");
	assert_int_equal(bench->dso.build_id.size, BUILD_ID_BYTES);
	assert_loads(bench, "/bin/it", id_of(0xab), "here");
	assert_loads(bench, "/bin/other", id_of(0xab), NULL);
	assert_non_null(strstr(bench->note, "/bin/other: No such file"));
	assert_loads(bench, "//anon", id_of(0xab), NULL);
	assert_loads(bench, "[heap]", id_of(0xab), NULL);
	assert_string_equal(bench->note, "");
}

static void a_file_of_another_build_comes_from_the_cache(void **state)
{
	struct bench *bench = *state;

	make_program(bench, "bin/it", 0x11, "newer");
	assert_loads(bench, "/bin/it", id_of(0xab), NULL);
	assert_non_null(strstr(bench->note, "/bin/it: not the file that was traced"));
	bench->places.build_id_dir = bench->tree.path;
	make_cached(bench, "", 0xab, "/elf", "traced");
	assert_loads(bench, "/bin/it", id_of(0xab), "traced");
	make_program(bench, "bin/it", 0xab, "same");
	assert_loads(bench, "/bin/it", id_of(0xab), "same");
}

static void symbols_may_be_in_a_file_of_their_own(void **state)
{
	struct bench *bench = *state;

	make_program(bench, "bin/it", 0xab, NULL);
	assert_loads(bench, "/bin/it", id_of(0xab), "");
	make_program(bench, "usr/lib/debug/.build-id/ab/other.debug", 0xab, "elsewhere");
	assert_loads(bench, "/bin/it", id_of(0xab), "");
	make_cached(bench, "usr/lib/debug/", 0xab, ".debug", "system's");
	assert_loads(bench, "/bin/it", id_of(0xab), "system's");
	assert_loads(bench, "/bin/it", (struct build_id){ .size = 0 }, "system's");
	bench->places.build_id_dir = bench->tree.path;
	make_cached(bench, "", 0xab, "/debug", "cache's");
	assert_loads(bench, "/bin/it", id_of(0xab), "cache's");
}

static void names_are_as_in_source_code_unless_told_otherwise(void **state)
{
	struct bench *bench = *state;

	make_program(bench, "bin/it", 0xab, "_Z3runv");
	assert_loads(bench, "/bin/it", id_of(0xab), "run");
	bench->places.keep_mangled = true;
	assert_loads(bench, "/bin/it", id_of(0xab), "_Z3runv");
}

/* Of the vDSO of this process; none where there is no vDSO. */
static struct build_id own_id(void)
{
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)vdso;
	struct build_id id = { .size = 0 };

	for (unsigned i = 0; vdso && i < header->e_phnum && !id.size; i++) {
		const Elf64_Phdr *part =
			(const Elf64_Phdr *)(const void *)(vdso + header->e_phoff) + i;

		if (part->p_type == PT_NOTE)
			(void)build_id_find((struct bytes){ vdso + part->p_offset, part->p_filesz },
					    &id);
	}
	return id;
}

static void the_vdso_is_that_of_the_cache_or_of_this_process(void **state)
{
	struct bench *bench = *state;
	struct build_id own = own_id();

	assert_loads(bench, "[vdso]", (struct build_id){ .size = 0 }, NULL);
	assert_string_equal(bench->note, "[vdso]: no copy with the traced build id");
	assert_loads(bench, "[vdso]", id_of(0xab), NULL);
	bench->places.build_id_dir = bench->tree.path;
	make_cached(bench, "", 0xab, "/vdso", "cached");
	assert_loads(bench, "[vdso]", id_of(0xab), "cached");
	if (!own.size)
		skip();
	dso_unload(&bench->dso);
	bench->dso = (struct dso){ .name = "[vdso]", .build_id = own };
	dso_load(&bench->dso, &bench->places, bench->note, sizeof(bench->note));
	assert_memory_equal(bench->dso.file.data, ELFMAG, SELFMAG);
	assert_true(symbols_address(&bench->dso.symbols, "__vdso_clock_gettime") > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_found_by_its_path),
		TEST(a_file_of_another_build_comes_from_the_cache),
		TEST(symbols_may_be_in_a_file_of_their_own),
		TEST(names_are_as_in_source_code_unless_told_otherwise),
		TEST(the_vdso_is_that_of_the_cache_or_of_this_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
