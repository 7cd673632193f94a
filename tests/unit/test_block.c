#include "decode/flow/block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/huge_pages.h"
#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"

enum { KERNEL = 0x81000000 };

struct fixture {
	struct machines machines;
	struct code code;
};

static int set_up(void **state)
{
	static struct fixture fixture;

	assert_true(bench_machines_new(&fixture.machines));
	code_init(&fixture.code, &fixture.machines);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	code_free(&fixture->code);
	machines_free(&fixture->machines);
	return 0;
}

/* The host's block at an address, where this code is. */
static struct block *block_of(struct fixture *fixture, uint64_t ip, const void *bytes, size_t size)
{
	assert_true(bench_add_code(fixture->machines.host, ip, bytes, size));
	return block_get(&fixture->code,
			 code_space_get(&fixture->code, fixture->machines.host, 0, ip, 64), ip, 0);
}

static void a_block_runs_through_direct_jumps_to_a_decision(void **state)
{
	/* nop; jmp +2; (skipped); call +1; (skipped); je -9 */
	static const uint8_t bytes[] = { 0x90, 0xeb, 2, 0xcc, 0xcc, 0xe8, 1,
					 0,    0,    0, 0xcc, 0x74, 0xf3 };
	struct block *block = block_of(*state, 0x1000, bytes, sizeof(bytes));

	assert_int_equal(block->count, 4);
	assert_false(block->straight);
	assert_int_equal(block->insns[1].ip, 0x1001);
	assert_int_equal(block->insns[2].ip, 0x1005);
	assert_int_equal(block->insns[3].ip, 0x100b);
	assert_int_equal(block->end, BLOCK_CONDITIONAL);
	assert_int_equal(block->next, 0x100d);
	assert_int_equal(block->target, 0x1000);
	assert_int_equal(block_ip_after(block, 2), 0x1005);
	assert_int_equal(block_ip_after(block, 4), 0x100d);
}

static void calls_are_remembered_but_not_those_of_the_next_instruction(void **state)
{
	/* call +0; call +1; (skipped); call *%rax */
	static const uint8_t bytes[] = { 0xe8, 0, 0, 0, 0, 0xe8, 1, 0, 0, 0, 0xcc, 0xff, 0xd0 };
	struct block *block = block_of(*state, 0x1000, bytes, sizeof(bytes));

	assert_int_equal(block->end, BLOCK_INDIRECT);
	assert_int_equal(block->push_count, 2);
	assert_int_equal(block_pushes(block)[0], 0x100a);
	assert_int_equal(block_pushes(block)[1], 0x100d);
}

static void each_kind_of_end_is_told(void **state)
{
	static const struct {
		uint8_t bytes[3], size, end;
	} rows[] = {
		{ { 0xc3 }, 1, BLOCK_RETURN },
		{ { 0xff, 0xe0 }, 2, BLOCK_INDIRECT },
		{ { 0x0f, 0x05 }, 2, BLOCK_FAR },
		{ { 0x0f, 0x01, 0xc3 }, 3, BLOCK_FAR },
		{ { 0x0f, 0x0b }, 2, BLOCK_UD }, /* by an exception */
		{ { 0x90 }, 1, BLOCK_NO_CODE },
		{ { 0x90, 0x06 }, 2, BLOCK_NO_CODE }, /* no instruction */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct block *block =
			block_of(*state, 0x1000 * (i + 1), rows[i].bytes, rows[i].size);

		assert_int_equal(block->end, rows[i].end);
		assert_int_equal(block->count, 1);
	}
}

static void a_long_block_goes_on_in_the_next(void **state)
{
	uint8_t bytes[BLOCK_MAX_INSNS + 10];
	struct block *block;

	memset(bytes, 0x90, sizeof(bytes));
	block = block_of(*state, 0x1000, bytes, sizeof(bytes));
	assert_int_equal(block->end, BLOCK_GOES_ON);
	assert_int_equal(block->count, BLOCK_MAX_INSNS);
	assert_int_equal(block->next, 0x1000 + BLOCK_MAX_INSNS);
}

static void a_block_is_made_once_for_each_space(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host = fixture->machines.host;
	struct code *code = &fixture->code;
	struct code_space *space = code_space_get(code, host, 5, 0x1000, 64);

	(void)block_of(fixture, 0x1000, "\x40\xc3", 2);
	assert_ptr_equal(code_space_get(code, host, 5, 0x1000, 64), space);
	assert_ptr_equal(block_get(code, space, 0x1000, 0), block_get(code, space, 0x1000, 0));
	assert_ptr_not_equal(code_space_get(code, host, 6, 0x1000, 64), space);
	assert_ptr_not_equal(code_space_get(code, host, 5, 0x1000, 32), space);
	assert_ptr_not_equal(code_space_get(code, fixture->machines.guests[0], 5, 0x1000, 64),
			     space);
	assert_int_equal(block_get(code, space, 0x1000, 0)->count, 1);
	space = code_space_get(code, host, 5, 0x1000, 32);
	assert_int_equal(block_get(code, space, 0x1000, 0)->count, 2);
}

static void the_kernel_is_one_space_for_all_processes(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host = fixture->machines.host;
	uint64_t ip = 0xffffffff00000000 | KERNEL;

	assert_ptr_equal(code_space_get(&fixture->code, host, 5, ip, 64),
			 code_space_get(&fixture->code, host, -1, ip, 64));
	assert_ptr_not_equal(code_space_get(&fixture->code, host, 5, 0x1000, 64),
			     code_space_get(&fixture->code, host, 5, ip, 64));
}

/* Else each call of the kernel would go through the spaces of all processes. */
static void the_space_that_was_needed_last_is_found_first(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host = fixture->machines.host;
	struct code *code = &fixture->code;
	struct code_space *spaces[3];

	for (int32_t i = 0; i < 3; i++)
		spaces[i] = code_space_get(code, host, 5 + i, 0x1000, 64);
	for (int32_t i = 0; i < 3; i++) {
		assert_ptr_equal(code_space_get(code, host, 5 + i, 0x1000, 64), spaces[i]);
		assert_ptr_equal(code->spaces, spaces[i]);
	}
	assert_ptr_equal(spaces[2]->next, spaces[1]);
	assert_ptr_equal(spaces[1]->next, spaces[0]);
	assert_null(spaces[0]->next);
}

static void many_blocks_are_all_found_again(void **state)
{
	enum { COUNT = 5000 };
	struct fixture *fixture = *state;
	struct block *blocks[COUNT];
	struct code_space *space;
	uint8_t bytes[COUNT];

	memset(bytes, 0xc3, sizeof(bytes));
	blocks[0] = block_of(fixture, 0x1000, bytes, sizeof(bytes));
	space = blocks[0]->space;
	for (uint64_t i = 1; i < COUNT; i++)
		blocks[i] = block_get(&fixture->code, space, 0x1000 + i, 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_int_equal(blocks[i]->ip, 0x1000 + i);
		assert_ptr_equal(block_get(&fixture->code, space, 0x1000 + i, 0), blocks[i]);
	}
	assert_false(code_is_full(&fixture->code));
	code_trim(&fixture->code);
	assert_int_equal(fixture->code.arena.total, 0);
}

/* Each space has a table, also one in which there is hardly any code. */
static void code_is_full_of_spaces_too(void **state)
{
	enum { MOST = 4 << 20, LEAST_TABLE = 4 << 10 };
	struct fixture *fixture = *state;
	struct code *code = &fixture->code;
	int32_t pid = 0;

	code->most_bytes = MOST;
	while (pid <= MOST / LEAST_TABLE && !code_is_full(code))
		assert_non_null(code_space_get(code, fixture->machines.host, ++pid, 0x1000, 64));
	assert_true(pid > 1 && pid < MOST / LEAST_TABLE);
	code_trim(code);
	assert_false(code_is_full(code));
}

/* The next piece of memory is a whole huge page: it must not be taken first. */
static void code_is_full_before_it_takes_more_than_its_share(void **state)
{
	enum { COUNT = 60000 };
	static uint8_t bytes[COUNT];
	struct fixture *fixture = *state;
	struct code *code = &fixture->code;
	struct block *block;

	memset(bytes, 0xc3, sizeof(bytes));
	code->most_bytes = HUGE_PAGE;
	block = block_of(fixture, 0x1000, bytes, sizeof(bytes));
	for (uint64_t i = 1; i < COUNT && !code_is_full(code); i++)
		assert_non_null(block_get(code, block->space, 0x1000 + i, 0));
	assert_true(code_is_full(code));
	assert_true(code->arena.total <= HUGE_PAGE);
	assert_true(code->arena.used > HUGE_PAGE / 2);
}

static void an_instruction_in_two_pieces_of_code_is_whole(void **state)
{
	struct fixture *fixture = *state;
	struct block *block;

	assert_true(bench_add_code(fixture->machines.host, 0x1003, "\0\0\xc3", 3));
	block = block_of(fixture, 0x1000, "\xe8\0\0", 3);
	assert_int_equal(block->count, 2);
	assert_int_equal(block->insns[0].length, 5);
	assert_int_equal(block->end, BLOCK_RETURN);
}

static void code_that_is_not_there_is_looked_for_once(void **state)
{
	struct fixture *fixture = *state;
	struct block *block = block_of(fixture, 0x1000, "\x90", 1);

	assert_int_equal(block->end, BLOCK_NO_CODE);
	assert_ptr_equal(block_get(&fixture->code, block->space, 0x1000, 5), block);
	block = block_get(&fixture->code, block->space, 0x2000, 0);
	assert_int_equal(block->count, 0);
	assert_ptr_equal(block_get(&fixture->code, block->space, 0x2000, 0), block);
}

/* As of a program of BPF that was there only while the trace ran. */
static void where_a_kernel_has_nothing_but_int3s_there_is_no_code(void **state)
{
	const uint64_t kernel = 0xffffffffc0000000;
	struct fixture *fixture = *state;
	uint8_t bytes[1 + INSN_MAX_SIZE];
	struct block *block;

	memset(bytes, 0xcc, sizeof(bytes));
	bytes[0] = 0x90;
	block = block_of(fixture, kernel, bytes, sizeof(bytes));
	assert_int_equal(block->count, 2);
	assert_int_equal(block->end, BLOCK_FAR);
	block = block_get(&fixture->code, block->space, kernel + 1, 0);
	assert_int_equal(block->count, 0);
	assert_int_equal(block->end, BLOCK_NO_CODE);
	block = block_get(&fixture->code, block->space, kernel + 2, 0);
	assert_int_equal(block->end, BLOCK_FAR);
	assert_int_equal(block_of(fixture, 0x1000, bytes + 1, INSN_MAX_SIZE)->end, BLOCK_FAR);
}

static void a_guest_that_is_not_known_has_no_code(void **state)
{
	struct fixture *fixture = *state;
	struct code_space *space = code_space_get(&fixture->code, NULL, 5, 0x1000, 64);

	assert_int_equal(block_get(&fixture->code, space, 0x1000, 0)->end, BLOCK_NO_CODE);
	assert_int_equal(block_get(&fixture->code, space, 0x1000, 0)->count, 0);
}

static void a_jump_label_has_another_form(void **state)
{
	/* nop; nop of 5 bytes; ret; (and further on) ret */
	static const uint8_t bytes[] = { 0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3, 0xcc, 0xc3 };
	struct fixture *fixture = *state;
	static const uint8_t jump[] = { 0xe9, 2, 0, 0, 0 };
	struct block *block = block_of(fixture, 0x1000, bytes, sizeof(bytes)), *variant;

	variant = block_variant(&fixture->code, block, 1, jump, sizeof(jump));
	assert_non_null(variant);
	assert_true(block->straight && !variant->straight);
	assert_int_equal(variant->count, 2);
	assert_int_equal(variant->next, 0x1008);
	assert_int_equal(variant->insns[1].class, INSN_JMP);
	assert_int_equal(variant->insns[1].target, 0x1008);
	assert_memory_equal(variant->insns[1].bytes, "\xe9\2\0\0\0", 5);
	assert_ptr_equal(block_variant(&fixture->code, block, 1, jump, sizeof(jump)), variant);
	assert_int_equal(block->insns[1].class, INSN_PLAIN);
}

static void what_begins_inside_of_an_instruction_of_a_module_is_astray(void **state)
{
	/* nopl 0(rax, rax); ret */
	static const uint8_t bytes[] = { 0x0f, 0x1f, 0x44, 0, 0, 0xc3 };
	const uint64_t module = 0xffffffffc0200000, kernel = 0xffffffff81000000;
	struct fixture *fixture = *state;
	struct machine *host = fixture->machines.host;
	struct symbol symbol = { .start = module, .name = "function", .module = "[a]" };

	assert_int_equal(symbols_add(&host->symbols, &symbol), 0);
	assert_true(bench_add_function(host, kernel));
	assert_false(block_of(fixture, module, bytes, sizeof(bytes))->astray);
	for (unsigned i = 1; i < sizeof(bytes); i++) {
		struct block *block =
			block_get(&fixture->code, fixture->code.spaces, module + i, 0);

		assert_int_equal(block->astray, i < 5);
		assert_int_equal(block->patched, i < 5);
	}
	assert_false(block_of(fixture, kernel, bytes, sizeof(bytes))->astray);
	assert_false(block_get(&fixture->code, fixture->code.spaces, kernel + 3, 0)->astray);
}

/* Where the function begins in code that is replaced, and what follows is not. */
static void what_is_astray_is_so_for_as_long_as_what_is_before_it(void **state)
{
	enum { SIZE = 64, SINCE = 100 };
	const uint64_t module = 0xffffffffc0200000;
	struct fixture *fixture = *state;
	struct machine *host = fixture->machines.host;
	const struct symbol symbol = { .start = module, .name = "function", .module = "[a]" };
	uint8_t before[SIZE + 2], after[SIZE];
	struct code_space *space;
	struct block *early, *late;

	memset(before, 0x90, sizeof(before)); /* the last nop becomes a part of a longer one */
	before[SIZE + 1] = 0xc3;
	memset(after, 0xf8, SIZE);
	after[SIZE - 1] = 0x66;
	assert_true(bench_add_code(host, module, before, sizeof(before)));
	assert_int_equal(symbols_add(&host->symbols, &symbol), 0);
	assert_int_equal(symbols_finish(&host->symbols, true), 0);
	assert_int_equal(
		later_code_add(&host->later, module, before, (struct bytes){ after, SIZE }), 0);
	assert_int_equal(host->later.ranges.count, 1);
	host->later.ranges.items[0].since = SINCE;
	space = code_space_get(&fixture->code, host, 0, module, 64);
	early = block_get(&fixture->code, space, module + SIZE, SINCE - 1);
	late = block_get(&fixture->code, space, module + SIZE, SINCE);
	assert_false(early->astray);
	assert_true(late->astray);
	assert_ptr_equal(block_get(&fixture->code, space, module + SIZE, 0), early);
}

/* A symbol table that was made up may have one for all of memory. */
static void far_from_a_symbol_nothing_is_astray(void **state)
{
	enum { FAR = 1 << 20 };
	static uint8_t bytes[FAR + 8];
	const uint64_t module = 0xffffffffc0200000;
	struct fixture *fixture = *state;
	struct machine *host = fixture->machines.host;
	struct symbol symbol = {
		.start = module, .end = module + sizeof(bytes), .name = "all", .module = "[a]"
	};

	memset(bytes, 0x90, FAR);
	memcpy(bytes + FAR, "\x0f\x1f\x44\x00\x00\xc3", 6);
	memcpy(bytes + 32, "\x0f\x1f\x44\x00\x00\xc3", 6);
	assert_int_equal(symbols_add(&host->symbols, &symbol), 0);
	assert_false(block_of(fixture, module, bytes, sizeof(bytes))->astray);
	assert_true(block_get(&fixture->code, fixture->code.spaces, module + 33, 0)->astray);
	assert_false(block_get(&fixture->code, fixture->code.spaces, module + FAR + 1, 0)->astray);
}

/* Functions of the kernel: with a NOP for ftrace, without one, in what trampolines are made of, and
 * with a static call. */
static void blocks_of_traced_functions_are_patched(void **state)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0, 0, 0xc3 };
	static const uint64_t kernel = 0xffffffff81000000;
	struct fixture *fixture = *state;
	struct ftrace_site site = { .ip = kernel };
	const struct ftrace_table table = {
		.items = &site,
		.count = 1,
		.from = kernel + 0x20,
		.to = kernel + 0x30,
		.static_calls = { { .site = kernel + 0x30 } },
		.static_call_count = 1,
	};
	struct code_traced traced = { fixture->machines.host, &table, false };
	struct block *blocks[4];

	for (unsigned i = 0; i < 4; i++)
		blocks[i] = block_of(fixture, kernel + i * 0x10, nop, sizeof(nop));
	blocks[1]->successor[0] = blocks[1]->successor[1] = blocks[1];
	blocks[2]->successor[0] = blocks[1];
	code_add_traced(&fixture->code, &traced);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(blocks[i]->patched, i == 2);
	traced.is_all = true;
	code_add_traced(&fixture->code, &traced);
	code_add_traced(&fixture->code, &traced);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(blocks[i]->patched, i != 1);
	assert_int_equal(fixture->code.traced.count, 2);
	assert_ptr_equal(blocks[1]->successor[0], blocks[1]);
	assert_null(blocks[2]->successor[0]);
}

/* One runs straight on, the other jumps back over a NOP and another jump. */
static void blocks_are_patched_until_that_is_forgotten(void **state)
{
	static const uint8_t straight[] = { 0x90, 0x90, 0xc3 };
	static const uint8_t bent[] = { 0x90, 0xc3, 0xeb, 0xfc };
	static const uint64_t kernel = 0xffffffff81000000;
	struct fixture *fixture = *state;
	struct block *blocks[2] = {
		block_of(fixture, kernel, straight, sizeof(straight)),
		block_of(fixture, kernel + 0x10, bent, sizeof(bent)),
	};
	struct code_site site = { fixture->machines.host };

	blocks[1] = block_get(&fixture->code, blocks[1]->space, kernel + 0x12, 0);
	assert_int_equal(blocks[1]->count, 3);
	for (uint64_t at = 0; at < 0x20; at++) {
		site.ip = kernel + at;
		code_forget_patched(&fixture->code);
		code_add_sites(&fixture->code, &site, 1);
		assert_int_equal(blocks[0]->patched, at <= 2);
		assert_int_equal(blocks[1]->patched, at >= 0x10 && at <= 0x12);
	}
	site = (struct code_site){ NULL, kernel + 1 };
	code_add_sites(&fixture->code, &site, 1);
	assert_false(blocks[0]->patched);
}

/* Nobody knows any more which. */
static void with_too_many_sites_all_of_kernels_is_patched(void **state)
{
	enum { SITES = 1 << 17 };
	static const uint64_t kernel = 0xffffffff81000000;
	struct fixture *fixture = *state;
	struct code_site *sites = malloc(SITES * sizeof(*sites));
	struct block *user, *blocks[2];

	assert_non_null(sites);
	for (size_t i = 0; i < SITES; i++)
		sites[i] = (struct code_site){ fixture->machines.host, kernel + SITES - i };
	user = block_of(fixture, 0x1000, (const uint8_t *)"\xc3", 1);
	for (unsigned i = 0; i < 2; i++)
		blocks[i] = block_of(fixture, kernel + SITES * i, (const uint8_t *)"\xc3", 1);
	code_add_sites(&fixture->code, sites, 1000);
	code_add_sites(&fixture->code, sites, 1000);
	assert_int_equal(fixture->code.sites.count, 1000);
	assert_false(blocks[0]->patched);
	assert_true(blocks[1]->patched);
	code_add_sites(&fixture->code, sites, SITES);
	assert_true(fixture->code.sites.count < SITES);
	assert_true(blocks[0]->patched);
	assert_true(block_of(fixture, kernel + 2 * SITES, (const uint8_t *)"\xc3", 1)->patched);
	assert_false(user->patched);
	code_add_sites(&fixture->code, sites, SITES);
	assert_true(fixture->code.sites.count < SITES);
	code_forget_patched(&fixture->code);
	assert_false(blocks[0]->patched || blocks[1]->patched);
	free(sites);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_block_runs_through_direct_jumps_to_a_decision),
		TEST(calls_are_remembered_but_not_those_of_the_next_instruction),
		TEST(each_kind_of_end_is_told),
		TEST(a_long_block_goes_on_in_the_next),
		TEST(a_block_is_made_once_for_each_space),
		TEST(the_kernel_is_one_space_for_all_processes),
		TEST(the_space_that_was_needed_last_is_found_first),
		TEST(many_blocks_are_all_found_again),
		TEST(code_is_full_of_spaces_too),
		TEST(code_is_full_before_it_takes_more_than_its_share),
		TEST(an_instruction_in_two_pieces_of_code_is_whole),
		TEST(code_that_is_not_there_is_looked_for_once),
		TEST(where_a_kernel_has_nothing_but_int3s_there_is_no_code),
		TEST(a_guest_that_is_not_known_has_no_code),
		TEST(a_jump_label_has_another_form),
		TEST(what_begins_inside_of_an_instruction_of_a_module_is_astray),
		TEST(what_is_astray_is_so_for_as_long_as_what_is_before_it),
		TEST(far_from_a_symbol_nothing_is_astray),
		TEST(blocks_of_traced_functions_are_patched),
		TEST(blocks_are_patched_until_that_is_forgotten),
		TEST(with_too_many_sites_all_of_kernels_is_patched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
