#include "decode/print/branch_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/print_line.h"
#include "decode/print/sample_flags.h"
#include "tests/flow_bench.h"
#include "tests/print_bench.h"

/* A kernel with two functions, and code after them that belongs to none:
 *	00 call 10; 05 jmp *%rax	10 nop; 11 jmp 13; 13 jne 10	20 ret */

enum { CALLEE = 0x10, RETURN = 0x20 };

static const uint64_t kernel = 0xffffffff81000000;

static struct print_bench *bench_with(uint32_t fields)
{
	static const uint8_t bytes[] = {
		0xe8, 0x0b,           0, 0, 0, 0xff, 0xe0, [CALLEE] = 0x90, 0xeb, 0, 0x75,
		0xfb, [RETURN] = 0xc3
	};
	struct print_bench *bench = print_bench_new(fields, "b");

	assert_true(bench_add_code(bench->machines.host, kernel, bytes, sizeof(bytes)));
	assert_true(bench_add_function(bench->machines.host, kernel));
	assert_true(bench_add_function(bench->machines.host, kernel + CALLEE));
	return bench;
}

static struct block *block_at(struct print_bench *bench, uint64_t offset)
{
	struct block *block =
		block_get(&bench->code, print_space(&bench->printer, kernel), kernel + offset, 0);

	assert_non_null(block);
	return block;
}

static void expect_range(const struct branch_text *text, uint32_t from, uint32_t to,
			 const char *expected)
{
	assert_int_equal(to - from, strlen(expected));
	assert_memory_equal(text->lines + from, expected, to - from);
}

static void a_branch_to_the_next_instruction_is_a_whole_line(void **state)
{
	struct print_bench *bench = bench_with(FIELD_EVENT | FIELD_FLAGS | FIELD_IP | FIELD_SYM |
					       FIELD_ADDR | FIELD_INSNLEN);
	const struct branch_text *text = branch_text(&bench->printer, block_at(bench, 0));
	const struct branch_parts *call = branch_parts_at(text, 0);

	assert_int_equal(text->count, 3);
	assert_int_equal(text->known, 2);
	expect_range(text, text->offsets[0], text->offsets[1],
		     "  branches:k:   call                   ffffffff81000000 function => "
		     "ffffffff81000010 function ilen: 5\n");
	expect_range(text, text->offsets[1], text->offsets[2],
		     "  branches:k:   jmp                    ffffffff81000011 function => "
		     "ffffffff81000013 function ilen: 2\n");
	assert_int_equal(call->line, text->offsets[0]);
	expect_range(text, call->source.place.from, call->source.place.to,
		     "ffffffff81000000 function");
	expect_range(text, call->target.place.from, call->target.place.to,
		     "ffffffff81000010 function");
	expect_range(text, call->insn, call->end, " ilen: 5\n");
	assert_int_equal(call->flags, SAMPLE_BRANCH | SAMPLE_CALL);
	print_bench_free(bench);
}

static void the_target_of_the_last_branch_is_left_open(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_ADDR | FIELD_CALLINDENT);
	struct block *block = block_at(bench, 0);
	const struct branch_text *text = branch_text(&bench->printer, block);
	const struct branch_parts *last = branch_parts_at(text, block->count - 1u);

	assert_ptr_equal(last, &text->branches[2]);
	expect_range(text, last->line, last->target.place.from, " ffffffff81000013 => ");
	expect_range(text, last->target.place.from, last->insn, "");
	expect_range(text, last->target.name.from, last->target.name.to, "");
	expect_range(text, last->insn, last->end, "\n");
	print_bench_free(bench);
}

static void other_branches_find_where_the_block_starts(void **state)
{
	struct print_bench *bench = bench_with(FIELD_SYM | FIELD_ADDR);
	const struct branch_text *text = branch_text(&bench->printer, block_at(bench, CALLEE));

	expect_range(text, text->start.place.from, text->start.place.to,
		     "ffffffff81000010 function");
	expect_range(text, text->start.name.from, text->start.name.to, "");
	print_bench_free(bench);
}

static void only_what_the_fields_want_is_there(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP);
	const struct branch_text *text = branch_text(&bench->printer, block_at(bench, 0));

	expect_range(text, text->offsets[0], text->offsets[3],
		     " ffffffff81000000\n ffffffff81000011\n ffffffff81000013\n");
	expect_range(text, text->start.place.from, text->start.place.to, "");
	print_bench_free(bench);
}

static void names_to_be_indented_stand_alone(void **state)
{
	struct print_bench *bench = bench_with(FIELD_CALLINDENT | FIELD_DSO);
	struct block *block = block_at(bench, 0);
	const struct branch_text *text = branch_text(&bench->printer, block);
	const struct branch_parts *call = branch_parts_at(text, 0);
	char dso[64];

	(void)snprintf(dso, sizeof(dso), "(%s)\t", address_symbol(block->space, kernel, 0).dso);
	expect_range(text, call->source.name.from, call->source.name.to, "function");
	expect_range(text, call->target.name.from, call->target.name.to, "function");
	expect_range(text, call->dso.from, call->dso.to, dso);
	expect_range(text, text->start.name.from, text->start.name.to, "function");
	expect_range(text, text->offsets[0], text->offsets[3], "\n\n\n");
	print_bench_free(bench);
}

static void what_is_no_branch_has_no_parts(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP);
	const struct branch_text *text = branch_text(&bench->printer, block_at(bench, CALLEE));

	assert_null(branch_parts_at(text, 0));
	assert_int_equal(branch_parts_at(text, 1)->index, 1);
	assert_null(branch_parts_at(text, 3));
	assert_null(branch_parts_at(NULL, 0));
	print_bench_free(bench);
}

static void a_block_of_one_return_has_no_known_branch(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP);
	const struct branch_text *text = branch_text(&bench->printer, block_at(bench, RETURN));

	assert_int_equal(text->count, 1);
	assert_int_equal(text->known, 0);
	assert_int_equal(text->branches[0].flags, SAMPLE_BRANCH | SAMPLE_RETURN);
	print_bench_free(bench);
}

static void a_block_without_code_has_no_branches(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP | FIELD_ADDR | FIELD_CALLINDENT);
	const struct branch_text *text = branch_text(&bench->printer, block_at(bench, 0x9000));

	assert_int_equal(text->count, 0);
	assert_int_equal(text->known, 0);
	expect_range(text, text->start.place.from, text->start.place.to, "");
	print_bench_free(bench);
}

static void text_is_made_once(void **state)
{
	struct print_bench *bench = bench_with(FIELD_IP);
	struct block *block = block_at(bench, 0);
	const struct branch_text *text = branch_text(&bench->printer, block);

	assert_ptr_equal(branch_text(&bench->printer, block), text);
	assert_null(block->lines);
	print_bench_free(bench);
}

static void leads_are_made_once_for_each_kind(void **state)
{
	struct print_bench *bench = bench_with(FIELD_FLAGS);
	const struct text *call = branch_lead(&bench->printer, SAMPLE_BRANCH | SAMPLE_CALL);

	assert_int_equal(call->size, strlen("  call                  "));
	assert_memory_equal(call->data, "  call                  ", call->size);
	assert_ptr_not_equal(branch_lead(&bench->printer, SAMPLE_BRANCH), call);
	assert_ptr_equal(branch_lead(&bench->printer, SAMPLE_BRANCH | SAMPLE_CALL), call);
	print_bench_free(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_branch_to_the_next_instruction_is_a_whole_line),
		cmocka_unit_test(the_target_of_the_last_branch_is_left_open),
		cmocka_unit_test(other_branches_find_where_the_block_starts),
		cmocka_unit_test(only_what_the_fields_want_is_there),
		cmocka_unit_test(names_to_be_indented_stand_alone),
		cmocka_unit_test(what_is_no_branch_has_no_parts),
		cmocka_unit_test(a_block_of_one_return_has_no_known_branch),
		cmocka_unit_test(a_block_without_code_has_no_branches),
		cmocka_unit_test(text_is_made_once),
		cmocka_unit_test(leads_are_made_once_for_each_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
