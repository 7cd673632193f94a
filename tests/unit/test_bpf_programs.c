#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "decode/code/bpf_programs.h"

enum { ALL = 1 << 0 | 1 << 3 | 1 << 4, INFO = 232 };

/* A section made by hand. */
struct section {
	uint8_t bytes[2048];
	size_t size;
};

static void put(uint8_t *at, uint64_t value, size_t size)
{
	memcpy(at, &value, size);
}

/* Add a program of two functions, of 3 and 2 bytes, at 0x1000 and 0x2000 times its id. */
static uint8_t *add_program(struct section *section, uint32_t id, uint64_t arrays)
{
	static const uint8_t code[8] = { 1, 2, 3, 4, 5 };
	uint8_t *head = section->bytes + section->size, *info = head + 16, *data = info + INFO;

	put(head, INFO, 4);
	put(head + 4, 32, 4);
	put(head + 8, arrays, 8);
	put(info + 4, id, 4);
	put(info + 16, 5, 4);
	put(info + 24, 0, 8);
	put(info + 104, 2, 4);
	put(info + 108, 2, 4);
	put(info + 112, 8, 8);
	put(info + 120, 24, 8);
	memcpy(data, code, sizeof(code));
	put(data + 8, UINT64_C(0x1000) * id, 8);
	put(data + 16, UINT64_C(0x2000) * id, 8);
	put(data + 24, 3, 4);
	put(data + 28, 2, 4);
	section->size += 16 + INFO + 32;
	put(section->bytes, load_le(section->bytes, 4) + 1, 4);
	return info;
}

static int read(const struct section *section, struct bpf_programs *ret)
{
	*ret = (struct bpf_programs){ 0 };
	return bpf_programs_read((struct bytes){ section->bytes, section->size }, ret);
}

static void functions_are_found_by_their_program(void **state)
{
	struct section section = { .size = 4 };
	struct bpf_programs programs;
	const struct bpf_function *found;
	size_t count;

	(void)add_program(&section, 9, ALL);
	(void)add_program(&section, 4, ALL | 1 << 5);
	assert_int_equal(read(&section, &programs), 0);
	found = bpf_programs_find(&programs, 9, &count);
	assert_non_null(found);
	assert_int_equal(count, 2);
	assert_int_equal(found[0].address, 0x9000);
	assert_int_equal(found[0].code.size, 3);
	assert_int_equal(found[1].address, 0x12000);
	assert_int_equal(found[1].code.size, 2);
	assert_memory_equal(found[1].code.data, "\4\5", 2);
	assert_int_equal(bpf_programs_find(&programs, 4, &count)->address, 0x4000);
	assert_null(bpf_programs_find(&programs, 5, &count));
	assert_int_equal(count, 0);
	bpf_programs_free(&programs);
}

/* Made by perf 6.1 of a program that adds 5 and 3. */
static void what_perf_wrote_is_read(void **state)
{
	static const uint8_t code[] = { 0x0f, 0x1f, 0x44, 0,    0,    0x0f, 0x1f, 0,    0x55,
					0x48, 0x89, 0xe5, 0xb8, 5,    0,    0,    0,    0x48,
					0x83, 0xc0, 3,    0xc9, 0xe9, 0x69, 0x14, 0x1e, 0xc2 };
	struct section section = { .bytes = { 1 }, .size = 4 + 16 + INFO + 56 };
	uint8_t *head = section.bytes + 4, *info = head + 16, *data = info + INFO;
	struct bpf_programs programs;
	const struct bpf_function *found;
	size_t count;

	put(head, INFO, 4);
	put(head + 4, 56, 4);
	put(head + 8, 0x1f9, 8);
	put(info, 1, 4);
	put(info + 4, 123, 4);
	put(info + 16, sizeof(code), 4);
	put(info + 104, 1, 4);
	put(info + 108, 1, 4);
	put(info + 112, 32, 8);
	put(info + 120, 40, 8);
	memcpy(data, code, sizeof(code));
	put(data + 32, 0xffffffffc002205c, 8);
	put(data + 40, sizeof(code), 4);
	assert_int_equal(read(&section, &programs), 0);
	found = bpf_programs_find(&programs, 123, &count);
	assert_int_equal(count, 1);
	assert_int_equal(found->address, 0xffffffffc002205c);
	assert_int_equal(found->code.size, sizeof(code));
	assert_memory_equal(found->code.data, code, sizeof(code));
	bpf_programs_free(&programs);
}

static void a_program_whose_code_is_not_shown_has_no_functions(void **state)
{
	struct section section = { .size = 4 };
	struct bpf_programs programs;

	(void)add_program(&section, 1, ALL & ~1);
	(void)add_program(&section, 2, 1 << 0);
	assert_int_equal(read(&section, &programs), 0);
	assert_int_equal(programs.functions.count, 0);
	bpf_programs_free(&programs);
}

static void arrays_that_do_not_fit_are_damage(void **state)
{
	static const struct {
		size_t offset;
		uint32_t value;
	} damage[] = { { 104, 3 }, { 108, 1 }, { 112, 17 }, { 112, UINT32_MAX }, { 120, 29 } };

	for (size_t i = 0; i < sizeof(damage) / sizeof(*damage); i++) {
		struct section section = { .size = 4 };
		struct bpf_programs programs;
		uint8_t *info = add_program(&section, 1, ALL);

		put(info + damage[i].offset, damage[i].value, 4);
		assert_int_equal(read(&section, &programs), -PTVM_BAD_INPUT);
		bpf_programs_free(&programs);
	}
}

static void code_is_never_more_than_there_is(void **state)
{
	struct section section = { .size = 4 };
	struct bpf_programs programs;
	uint8_t *info = add_program(&section, 1, ALL);

	put(info + INFO + 24, UINT32_MAX, 4);
	put(info + 16, UINT32_MAX, 4);
	assert_int_equal(read(&section, &programs), 0);
	assert_int_equal(programs.functions.count, 1);
	assert_int_equal(programs.functions.items[0].code.size, 32);
	bpf_programs_free(&programs);
}

static void a_section_may_be_cut_anywhere(void **state)
{
	struct section section = { .size = 4 };
	size_t whole;

	(void)add_program(&section, 1, ALL);
	whole = section.size;
	for (section.size = 0; section.size < whole; section.size++) {
		struct bpf_programs programs;

		assert_int_equal(read(&section, &programs), -PTVM_BAD_INPUT);
		bpf_programs_free(&programs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found_by_their_program),
		cmocka_unit_test(what_perf_wrote_is_read),
		cmocka_unit_test(a_program_whose_code_is_not_shown_has_no_functions),
		cmocka_unit_test(arrays_that_do_not_fit_are_damage),
		cmocka_unit_test(code_is_never_more_than_there_is),
		cmocka_unit_test(a_section_may_be_cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
