#include "decode/flow/code_pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/block_text.h"
#include "tests/flow_bench.h"

enum {
	CODES = 3,
	BASE = 0x1000,
	SIZE = 4096, /* bytes of code */
	PID = 7,
	POOL_BYTES = 32 << 20,
	/* Of pools that are full at once, so that each generation has a few blocks only. */
	FULL = 0,
	THREADS = 4,
	ROUNDS = 4,
};

/* Two threads' worth of code and one that shares nothing, of a host with some bytes at BASE. */
struct fixture {
	struct machines machines;
	struct code_pool pool;
	struct code codes[CODES], alone;
	uint8_t bytes[SIZE];
};

static void begin(struct fixture *f, size_t most_bytes)
{
	code_pool_init(&f->pool, most_bytes);
	for (unsigned i = 0; i < CODES; i++) {
		code_init(&f->codes[i], &f->machines);
		f->codes[i].pool = &f->pool;
	}
}

static void end(struct fixture *f)
{
	for (unsigned i = 0; i < CODES; i++)
		code_free(&f->codes[i]);
	code_pool_free(&f->pool);
}

/* Bytes of which many are instructions that end a block. */
static void make_code(struct fixture *f)
{
	static const uint8_t bytes[] = { 0x90, 0x55, 0xe8, 1,    0,    0, 0,    0x74,
					 0xc3, 0xeb, 2,    0x0f, 0x05, 0, 0x89, 0xff };
	uint32_t random = 1;

	for (unsigned i = 0; i < SIZE; i++) {
		random = random * 1664525 + 1013904223;
		f->bytes[i] = bytes[random >> 28];
	}
}

static int set_up(void **state)
{
	static struct fixture fixture;
	struct fixture *f = &fixture;

	*f = (struct fixture){ 0 };
	make_code(f);
	assert_true(bench_machines_new(&f->machines));
	assert_true(bench_add_code(f->machines.host, BASE, f->bytes, SIZE));
	code_init(&f->alone, &f->machines);
	begin(f, POOL_BYTES);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	end(f);
	code_free(&f->alone);
	machines_free(&f->machines);
	return 0;
}

static struct block *get(struct fixture *f, struct code *code, int32_t pid, uint64_t ip)
{
	struct code_space *space = code_space_get(code, f->machines.host, pid, ip, 64);

	assert_non_null(space);
	return block_get(code, space, ip, 0);
}

static void a_block_is_read_once(void **state)
{
	struct fixture *f = *state;
	struct block *first = get(f, &f->codes[0], PID, BASE), *second;

	assert_true(first->count > 0);
	assert_non_null(first->pooled);
	first->successor[0] = first->successor[1] = first;
	second = get(f, &f->codes[1], PID, BASE);
	assert_ptr_not_equal(second, first);
	assert_ptr_equal(second->insns, first->insns);
	assert_ptr_equal(second->pooled, first->pooled);
	assert_ptr_equal(second->space, f->codes[1].spaces);
	assert_null(second->successor[0]);
	assert_null(second->successor[1]);
	assert_null(second->chain);
	assert_int_equal(code_pool_begun(&f->pool), 1);
}

static void text_is_made_once(void **state)
{
	const struct block_style style = { .fields = 0, .lead = "lead" };
	struct fixture *f = *state;
	struct block *first = get(f, &f->codes[0], PID, BASE);
	const struct block_text *text = block_lines(first, &style, &f->codes[0]);
	struct block *second = get(f, &f->codes[1], PID, BASE);

	assert_non_null(text);
	assert_null(second->lines);
	assert_ptr_equal(block_lines(second, &style, &f->codes[1]), text);
	assert_ptr_not_equal(block_lines(get(f, &f->alone, PID, BASE), &style, &f->alone), text);
}

static void other_address_spaces_have_other_blocks(void **state)
{
	struct fixture *f = *state;
	struct block *first = get(f, &f->codes[0], PID, BASE);
	struct code_space *space;

	assert_ptr_not_equal(get(f, &f->codes[1], PID + 1, BASE)->insns, first->insns);
	space = code_space_get(&f->codes[1], f->machines.host, PID, BASE, 32);
	assert_ptr_not_equal(block_get(&f->codes[1], space, BASE, 0)->insns, first->insns);
	space = code_space_get(&f->codes[1], NULL, PID, BASE, 64);
	assert_int_equal(block_get(&f->codes[1], space, BASE, 0)->count, 0);
	assert_ptr_equal(get(f, &f->codes[1], PID, BASE)->insns, first->insns);
}

/* As if the first thread had read it. */
static struct pooled_block *add(struct fixture *f, const struct block *block)
{
	struct pooled_block *room = block_alloc(&f->codes[0], block, sizeof(*room));

	assert_non_null(room);
	return code_generation_add(f->codes[0].generation, block, room);
}

static void code_of_other_times_is_other_code(void **state)
{
	struct fixture *f = *state;
	struct block block = *get(f, &f->codes[0], PID, BASE);
	struct code_generation *generation = f->codes[0].generation;
	struct pooled_block *early, *late;

	block.ip = BASE + SIZE;
	block.timed = true;
	block.from_ns = 10;
	block.to_ns = 20;
	early = add(f, &block);
	block.from_ns = 20;
	block.to_ns = UINT64_MAX;
	late = add(f, &block);
	assert_ptr_not_equal(early, late);
	assert_null(code_generation_find(generation, block.space, block.ip, 9));
	assert_ptr_equal(code_generation_find(generation, block.space, block.ip, 10), early);
	assert_ptr_equal(code_generation_find(generation, block.space, block.ip, 19), early);
	assert_ptr_equal(code_generation_find(generation, block.space, block.ip, 20), late);
}

/* Of two threads that read the same block at the same time, the second takes what the first has. */
static void a_block_is_added_once(void **state)
{
	struct fixture *f = *state;
	struct block *block = get(f, &f->codes[0], PID, BASE);

	assert_ptr_equal(add(f, block), block->pooled);
}

static void what_is_found_patched_is_not_shared(void **state)
{
	static const uint64_t kernel = 0xffffffff81000000;
	struct fixture *f = *state;
	const struct code_site site = { f->machines.host, kernel };
	struct block *block, *variant;

	assert_true(bench_add_code(f->machines.host, kernel, "\xc3", 1));
	code_add_sites(&f->codes[0], &site, 1);
	block = get(f, &f->codes[0], -1, kernel);
	assert_true(block->patched);
	assert_false(get(f, &f->codes[1], -1, kernel)->patched);
	variant = block_variant(&f->codes[0], block, 0, (const uint8_t *)"\x90", 1);
	assert_non_null(variant);
	assert_null(variant->pooled);
	assert_null(get(f, &f->codes[1], -1, kernel)->variants);
}

/* As the first block of each thread is where nobody knows the code. */
static void code_that_is_not_there_has_no_instructions(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < CODES; i++) {
		const struct block *block = get(f, &f->codes[i], PID, BASE - 1);

		assert_non_null(block);
		assert_int_equal(block->end, BLOCK_NO_CODE);
		assert_int_equal(block->count, 0);
	}
}

/* An instruction in two pieces of the image is copied, and its copy is for all, too. */
static void what_is_copied_outlives_who_copied_it(void **state)
{
	struct fixture *f = *state;
	struct block *block;

	assert_true(bench_add_code(f->machines.host, 0x9000, "\xe8\0", 2));
	assert_true(bench_add_code(f->machines.host, 0x9002, "\0\0\0\xc3", 4));
	block = get(f, &f->codes[0], PID, 0x9000);
	assert_int_equal(block->insns[0].length, 5);
	block = get(f, &f->codes[1], PID, 0x9000);
	code_free(&f->codes[0]);
	code_init(&f->codes[0], &f->machines);
	assert_memory_equal(block->insns[0].bytes, "\xe8\0\0\0\0", 5);
	assert_int_equal(block->end, BLOCK_RETURN);
}

static void a_full_generation_is_left(void **state)
{
	struct fixture *f = *state;
	struct code *const codes = f->codes;

	end(f);
	begin(f, FULL);
	assert_false(code_is_full(&codes[0]));
	(void)get(f, &codes[0], PID, BASE);
	assert_true(code_is_full(&codes[0]));
	/* the second one begins while the first is in use, a third does not */
	(void)get(f, &codes[1], PID, BASE);
	assert_int_equal(code_pool_begun(&f->pool), 2);
	assert_ptr_not_equal(codes[0].generation, codes[1].generation);
	assert_null(get(f, &codes[2], PID, BASE)->pooled);
	assert_null(codes[2].generation);
	assert_false(code_is_full(&codes[2]));
	/* until nobody is left in the first */
	code_trim(&codes[0]);
	assert_false(code_is_full(&codes[0]));
	assert_int_equal(f->pool.generations, 1);
	assert_non_null(get(f, &codes[2], PID, BASE + 1)->pooled);
	assert_int_equal(code_pool_begun(&f->pool), 3);
	assert_non_null(get(f, &codes[2], PID, BASE)->insns);
}

/* A pool that threads come to and leave, and what each block should be. */
struct stress {
	struct fixture *f;
	uint16_t counts[SIZE];
	uint64_t next[SIZE];
};

static void *use(void *context)
{
	struct stress *stress = context;
	struct fixture *f = stress->f;
	uintptr_t wrong = 0;
	struct code code;

	code_init(&code, &f->machines);
	code.pool = &f->pool;
	for (unsigned i = 0; i < ROUNDS * SIZE; i++) {
		unsigned at = i * 2654435761u % SIZE;
		struct code_space *space =
			code_space_get(&code, f->machines.host, PID, BASE + at, 64);
		const struct block *block = block_get(&code, space, BASE + at, 0);

		wrong += block->ip != BASE + at || block->count != stress->counts[at] ||
			 block->next != stress->next[at] ||
			 (block->count && block->insns[0].ip != block->ip);
		if (code_is_full(&code))
			code_trim(&code);
	}
	code_free(&code);
	return (void *)wrong;
}

static void assert_all_find_the_same(struct stress *stress)
{
	pthread_t threads[THREADS];
	void *wrong;

	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use, stress), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

static void threads_find_the_same_as_one(void **state)
{
	static struct stress stress;
	struct fixture *f = *state;

	stress.f = f;
	for (unsigned at = 0; at < SIZE; at++) {
		const struct block *block = get(f, &f->alone, PID, BASE + at);

		stress.counts[at] = block->count;
		stress.next[at] = block->next;
	}
	assert_all_find_the_same(&stress);
	assert_int_equal(code_pool_begun(&f->pool), 1);
	end(f);
	begin(f, (512 << 10) + (64 << 10)); /* the table, and some blocks */
	assert_all_find_the_same(&stress);
	assert_true(code_pool_begun(&f->pool) > 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_block_is_read_once),
		TEST(text_is_made_once),
		TEST(other_address_spaces_have_other_blocks),
		TEST(code_of_other_times_is_other_code),
		TEST(a_block_is_added_once),
		TEST(what_is_found_patched_is_not_shared),
		TEST(code_that_is_not_there_has_no_instructions),
		TEST(what_is_copied_outlives_who_copied_it),
		TEST(a_full_generation_is_left),
		TEST(threads_find_the_same_as_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
