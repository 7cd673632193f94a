#include "decode/print/block_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/fields.h"
#include "tests/flow_fixture.h"

/* Instructions by hand, in the words of perf's manual. */

static const uint64_t kernel = 0xffffffff81000000;

static int set_up(void **state)
{
	static struct flow_fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	flow_fixture_init(&fixture);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	flow_fixture_deinit(*state);
	return 0;
}

static void expect(struct text *text, const char *expected)
{
	text_putc(text, 0);
	assert_string_equal(text->data, expected);
	text_free(text);
}

static void assert_symbol(const struct symbol_view *view, uint32_t fields, const char *expected)
{
	struct text text = { 0 };

	symbol_text(&text, view, fields);
	expect(&text, expected);
}

static void a_symbol_is_a_name_an_offset_and_where_it_is(void **state)
{
	const struct symbol_view view = { .name = "main", .offset = 0x1f, .dso = "/bin/true" };

	assert_symbol(&view, FIELD_SYM | FIELD_SYMOFF | FIELD_DSO, " main+0x1f (/bin/true)");
	assert_symbol(&view, FIELD_SYM | FIELD_DSO, " main (/bin/true)");
	assert_symbol(&view, FIELD_SYM | FIELD_SYMOFF, " main+0x1f");
	assert_symbol(&view, FIELD_DSO, " (/bin/true)");
	assert_symbol(&view, FIELD_SYMOFF | FIELD_IP, "");
}

static void what_is_unknown_says_so(void **state)
{
	const struct symbol_view none = { 0 }, nameless = { .offset = 3, .dso = "[kvm]" };

	assert_symbol(&none, FIELD_SYM | FIELD_SYMOFF | FIELD_DSO, " [unknown] ([unknown])");
	assert_symbol(&nameless, FIELD_SYM | FIELD_SYMOFF | FIELD_DSO, " [unknown] ([kvm])");
}

static void names_are_fit_for_terminals(void **state)
{
	const struct symbol_view view = { .name = "a\033[2J", .dso = "b\n" };

	assert_symbol(&view, FIELD_SYM | FIELD_DSO, " a?[2J (b?)");
}

static void an_address_is_called_what_its_machine_says(void **state)
{
	struct flow_fixture *f = *state;
	struct code_space *space = code_space_get(&f->code, f->machines.host, -1, kernel, 64);
	struct code_space nowhere = { .bits = 64 };

	assert_true(bench_add_function(f->machines.host, kernel));
	assert_string_equal(address_symbol(space, kernel + 2, 0).name, "function");
	assert_int_equal(address_symbol(space, kernel + 2, 0).offset, 2);
	assert_null(address_symbol(space, 0, 0).name);
	assert_null(address_symbol(NULL, kernel, 0).name);
	assert_null(address_symbol(&nowhere, kernel, 0).name);
}

static void assert_insn(const void *bytes, uint8_t size, const struct block_style *style,
			uint8_t bits, const char *expected)
{
	const struct insn insn = { .ip = 0x1000, .bytes = bytes, .length = size };
	const struct code_space space = { .bits = bits };
	struct text text = { 0 };

	insn_text(&text, &insn, &space, style);
	expect(&text, expected);
}

static void assert_words(const void *bytes, uint8_t size, uint8_t bits, const char *expected)
{
	assert_insn(bytes, size, &(struct block_style){ .fields = FIELD_DISASM }, bits, expected);
}

static void an_instruction_has_a_length_bytes_and_words(void **state)
{
	static const uint8_t push[] = { 0x55 }, add[] = { 0x48, 0x83, 0xc0, 0x0f };
	struct block_style style = { .fields = FIELD_INSNLEN | FIELD_INSN | FIELD_DISASM };

	assert_insn(push, 1, &style, 64, " ilen: 1 insn: 55 push %rbp");
	assert_insn(add, 4, &style, 64, " ilen: 4 insn: 48 83 c0 0f add $0xf, %rax");
	style.intel = true;
	assert_insn(add, 4, &style, 64, " ilen: 4 insn: 48 83 c0 0f add rax, 0xf");
	style.fields = FIELD_IP;
	assert_insn(add, 4, &style, 64, "");
}

static void numbers_are_not_padded(void **state)
{
	static const uint8_t load[] = { 0x48, 0x8b, 0x41, 0x09 }, store[] = { 0x88, 0x45, 0xef };
	static const uint8_t jump[] = { 0xeb, 0x0e };

	assert_words(load, 4, 64, " mov 0x9(%rcx), %rax");
	assert_words(store, 3, 64, " mov %al, -0x11(%rbp)");
	assert_words(jump, 2, 64, " jmp 0x1010");
}

static void a_size_that_no_register_tells_is_in_the_name(void **state)
{
	static const uint8_t inc_b[] = { 0xfe, 0x00 }, inc_l[] = { 0xff, 0x00 };
	static const uint8_t inc_w[] = { 0x66, 0xff, 0x00 }, dec_q[] = { 0x48, 0xff, 0x08 };
	static const uint8_t push[] = { 0xff, 0x70, 0x08 }, pop[] = { 0x8f, 0x00 };
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x40, 0x00 };
	static const uint8_t inc_register[] = { 0xff, 0xc0 }, plain_nop[] = { 0x90 };

	assert_words(inc_b, 2, 64, " incb (%rax)");
	assert_words(inc_w, 3, 64, " incw (%rax)");
	assert_words(inc_l, 2, 64, " incl (%rax)");
	assert_words(dec_q, 3, 64, " decq (%rax)");
	assert_words(push, 3, 64, " pushq 0x8(%rax)");
	assert_words(pop, 2, 64, " popq (%rax)");
	assert_words(nop, 4, 64, " nopl %eax, (%rax)");
	assert_words(inc_register, 2, 64, " inc %eax");
	assert_words(plain_nop, 1, 64, " nop");
}

static void intel_syntax_tells_that_size_as_well(void **state)
{
	static const uint8_t inc_b[] = { 0xfe, 0x00 }, locked_inc[] = { 0xf0, 0xff, 0x00 };
	static const uint8_t push[] = { 0xff, 0x70, 0x08 }, store[] = { 0x88, 0x45, 0xef };
	const struct block_style style = { .fields = FIELD_DISASM, .intel = true };

	assert_insn(inc_b, 2, &style, 64, " inc byte ptr [rax]");
	assert_insn(locked_inc, 3, &style, 64, " lock inc dword ptr [rax]");
	assert_insn(push, 3, &style, 64, " push qword ptr [rax+0x8]");
	assert_insn(store, 3, &style, 64, " mov [rbp-0x11], al");
}

static void the_name_is_found_behind_a_prefix(void **state)
{
	static const uint8_t locked[] = { 0xf0, 0xff, 0x00 };

	assert_words(locked, 3, 64, " lock incl (%rax)");
}

static void the_same_bytes_are_others_in_other_modes(void **state)
{
	static const uint8_t bytes[] = { 0x40 };

	assert_words(bytes, 1, 32, " inc %eax");
	assert_words(bytes, 1, 16, " inc %ax");
	assert_words(bytes, 1, 64, " (bad)");
}

/* At KERNEL: push %rbp; jmp *%rax. */
static struct block *make_block(struct flow_fixture *f)
{
	static const uint8_t bytes[] = { 0x55, 0xff, 0xe0 };

	flow_fixture_code(f, kernel, bytes, sizeof(bytes));
	assert_true(bench_add_function(f->machines.host, kernel));
	return flow_fixture_block(f, kernel);
}

static void a_block_has_a_line_for_each_instruction(void **state)
{
	static const char *const expected = "lead  ffffffff81000000 function+0x0 insn: 55\n"
					    "lead  ffffffff81000001 function+0x1 insn: ff e0\n";
	const struct block_style style = { .fields =
						   FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_INSN,
					   .lead = "lead " };
	struct flow_fixture *f = *state;
	struct block *block = make_block(f);
	const struct block_text *text = block_lines(block, &style, &f->code);

	assert_non_null(text);
	assert_memory_equal(text->lines, expected, strlen(expected));
	assert_int_equal(text->offsets[0], 0);
	assert_int_equal(text->offsets[1], strchr(expected, '\n') + 1 - expected);
	assert_int_equal(text->offsets[2], strlen(expected));
	assert_ptr_equal(block_lines(block, &style, &f->code), text);
}

static void flags_come_before_the_address(void **state)
{
	static const char *const expected = "                         ffffffff81000000\n"
					    "  jmp                    ffffffff81000001\n";
	const struct block_style style = { .fields = FIELD_FLAGS | FIELD_IP, .lead = "" };
	struct flow_fixture *f = *state;
	const struct block_text *text = block_lines(make_block(f), &style, &f->code);

	assert_memory_equal(text->lines, expected, strlen(expected));
	assert_int_equal(text->offsets[2], strlen(expected));
}

static void a_block_without_instructions_has_no_lines(void **state)
{
	const struct block_style style = { .fields = FIELD_IP, .lead = "" };
	struct flow_fixture *f = *state;
	struct block *block = flow_fixture_block(f, 0x9000);

	assert_int_equal(block->count, 0);
	assert_int_equal(block_lines(block, &style, &f->code)->offsets[0], 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_symbol_is_a_name_an_offset_and_where_it_is),
		cmocka_unit_test(what_is_unknown_says_so),
		cmocka_unit_test(names_are_fit_for_terminals),
		TEST(an_address_is_called_what_its_machine_says),
		cmocka_unit_test(an_instruction_has_a_length_bytes_and_words),
		cmocka_unit_test(numbers_are_not_padded),
		cmocka_unit_test(a_size_that_no_register_tells_is_in_the_name),
		cmocka_unit_test(intel_syntax_tells_that_size_as_well),
		cmocka_unit_test(the_name_is_found_behind_a_prefix),
		cmocka_unit_test(the_same_bytes_are_others_in_other_modes),
		TEST(a_block_has_a_line_for_each_instruction),
		TEST(flags_come_before_the_address),
		TEST(a_block_without_instructions_has_no_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
