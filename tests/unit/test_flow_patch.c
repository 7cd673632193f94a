#include "decode/flow/flow_patch.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"
#include "tests/flow_bench.h"

/* A small kernel with jump labels, run in both forms; and simulated ones with many. */

enum { SIZE = 0x300, LEAF = 0x100, HANDLER = 0x200, TWICE = 0x280 };

static const uint64_t base = 0xffffffff81000000;

struct bench {
	uint8_t image[SIZE];
	uint8_t label; /* bytes of it: 2 or 5 */
	struct pt_bytes trace;
	struct {
		uint64_t *items;
		size_t count, room;
	} truth;
};

static size_t put(struct bench *bench, size_t at, const void *bytes, size_t size)
{
	memcpy(bench->image + at, bytes, size);
	return at + size;
}

/* A label at `at` that jumps over `distance` bytes, as the image has it. */
static size_t put_label(struct bench *bench, size_t at, bool jumps, uint8_t distance)
{
	if (bench->label == 2)
		return put(bench, at,
			   jumps ? (uint8_t[]){ 0xeb, distance } : (uint8_t[]){ 0x66, 0x90 }, 2);
	return put(bench, at,
		   jumps ? (uint8_t[]){ 0xe9, distance, 0, 0, 0 }
			 : (uint8_t[]){ 0x0f, 0x1f, 0x44, 0, 0 },
		   5);
}

/* main: xor; label to J; test; jne; xor; jmp E; J: call *rax; xor; E: jmp *rcx */
static void make_image(struct bench *bench, uint8_t label, bool jumps)
{
	size_t at;

	*bench = (struct bench){ .label = label };
	memset(bench->image, 0xcc, SIZE);
	at = put(bench, 0, "\x31\xc0", 2);
	at = put_label(bench, at, jumps, 8);
	at = put(bench, at, "\x85\xc0\x75\x02\x31\xc0\xeb\x04", 8);
	(void)put(bench, at, "\xff\xd0\x31\xdb\xff\xe1", 6);
	(void)put(bench, LEAF, "\x31\xc9\xc3", 3);
	(void)put(bench, HANDLER, "\x31\xd2\x48\xcf", 4);
	/* xor; label to B; test; jne; jmp *rcx; B: jne; label to J; test; jne; jmp *rcx;
	 * J: call *rax; jmp *rcx */
	at = put(bench, TWICE, "\x31\xc0", 2);
	at = put_label(bench, at, jumps, 6);
	at = put(bench, at, "\x85\xc0\x75\x00\xff\xe1\x75\x00", 8);
	at = put_label(bench, at, jumps, 6);
	(void)put(bench, at, "\x85\xc0\x75\x00\xff\xe1\xff\xd0\xff\xe1", 10);
}

static void ran(struct bench *bench, size_t at)
{
	if (!vec_push(&bench->truth, base + at))
		abort();
}

static void tip(struct bench *bench, size_t to)
{
	pt_put_ip(&bench->trace, PT_TIP, base + to, PT_IP_AUTO);
}

static void tnt(struct bench *bench, bool taken)
{
	pt_put(&bench->trace, &(struct pt_packet){ .kind = PT_TNT, .payload = taken, .count = 1 });
}

static void begin(struct bench *bench, size_t at)
{
	pt_put_psb(&bench->trace);
	pt_put_value(&bench->trace, PT_PSBEND, 0);
	pt_put_ip(&bench->trace, PT_TIP_PGE, base + at, PT_IP_AUTO);
}

static void call_leaf(struct bench *bench)
{
	ran(bench, LEAF);
	ran(bench, LEAF + 2);
	tip(bench, LEAF);
	tnt(bench, true);
}

/* Once through main, the label in one form. */
static void run_main(struct bench *bench, bool jumps, bool taken)
{
	size_t next = 2u + bench->label;

	ran(bench, 0);
	ran(bench, 2);
	if (jumps) {
		ran(bench, next + 8);
		call_leaf(bench);
		ran(bench, next + 10);
	} else {
		ran(bench, next);
		ran(bench, next + 2);
		if (!taken)
			ran(bench, next + 4);
		ran(bench, next + 6);
		tnt(bench, taken);
	}
	ran(bench, next + 12);
	tip(bench, 0);
}

/* Other processors' changes to code arrive with an interrupt. */
static void interrupt(struct bench *bench)
{
	pt_put_ip(&bench->trace, PT_FUP, base, PT_IP_AUTO);
	tip(bench, HANDLER);
	ran(bench, HANDLER);
	ran(bench, HANDLER + 2);
	tip(bench, 0);
}

/* Once through the other function, by way of both jumps. */
static void run_twice(struct bench *bench)
{
	size_t first = TWICE + 2u + bench->label, second = first + 8 + bench->label;

	ran(bench, TWICE);
	ran(bench, TWICE + 2);
	ran(bench, first + 6);
	ran(bench, first + 8);
	tnt(bench, true);
	ran(bench, second + 6);
	call_leaf(bench);
	ran(bench, second + 8);
	tip(bench, TWICE);
}

static void end(struct bench *bench, size_t at)
{
	pt_put_ip(&bench->trace, PT_FUP, base + at, PT_IP_AUTO);
	pt_put_ip(&bench->trace, PT_TIP_PGD, 0, 0);
}

static void make_machines(struct bench *bench, struct machines *ret)
{
	const uint16_t functions[] = { 0, LEAF, HANDLER, TWICE };
	struct sim_vm vm = { .machines[0].kernel = {
				     .base = base, .bytes = bench->image, .size = SIZE } };

	assert_true(bench_machines(&vm, ret));
	for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		assert_true(bench_add_function(ret->host, base + functions[i]));
}

static void assert_truth(struct bench *bench)
{
	const struct pt_config config = { .have_event_trace = false };
	struct bench_queue queue = { 0 };
	struct machines machines;
	struct bench_list list;

	make_machines(bench, &machines);
	bench_queue_add(&queue, bench->trace.data, bench->trace.size, false);
	bench_decode(&queue.queue, &config, &machines, 0, &list);
	assert_int_equal(list.gaps, 0);
	assert_int_equal(list.count, bench->truth.count);
	for (size_t i = 0; i < list.count; i++)
		assert_int_equal(list.items[i].ip, bench->truth.items[i]);
	bench_list_free(&list);
	bench_queue_free(&queue);
	machines_free(&machines);
	vec_free(&bench->truth);
	pt_bytes_free(&bench->trace);
}

/* `ways`: J and N, the form of the label each time. */
static void try_ways(uint8_t label, bool image_jumps, const char *ways)
{
	struct bench bench;

	make_image(&bench, label, image_jumps);
	begin(&bench, 0);
	for (const char *way = ways; *way; way++) {
		if (way > ways && way[-1] != *way)
			interrupt(&bench);
		run_main(&bench, *way == 'J', (way - ways) % 3 == 0);
	}
	end(&bench, 0);
	assert_truth(&bench);
}

static void try_everywhere(const char *ways)
{
	for (int jumps = 0; jumps < 2; jumps++) {
		try_ways(2, jumps, ways);
		try_ways(5, jumps, ways);
	}
}

static void a_label_has_the_other_form(void **state)
{
	try_everywhere("JJJJJJJJ");
	try_everywhere("NNNNNNNN");
}

static void a_label_changes_while_it_is_traced(void **state)
{
	try_everywhere("JJJJNNNNNN");
	try_everywhere("NNNNJJJJJJ");
}

static void a_label_changes_back(void **state)
{
	try_everywhere("JJJJNNNNNNJJJJJJNNNNNN");
	try_everywhere("NNNNJJJJJJNNNNNNJJJJJJ");
}

/* Neither label alone explains it, and no address is told between them. */
static void two_labels_change_at_once(void **state)
{
	for (uint8_t label = 2; label <= 5; label = (uint8_t)(label + 3)) {
		struct bench bench;

		make_image(&bench, label, false);
		begin(&bench, TWICE);
		for (int i = 0; i < 8; i++)
			run_twice(&bench);
		end(&bench, TWICE);
		assert_truth(&bench);
	}
}

/* Bits and addresses that no form of the code explains make a gap, as without patches. */
static void what_no_label_explains_stays_a_gap(void **state)
{
	const struct pt_config config = { .have_event_trace = false };
	struct bench_queue queue = { 0 };
	struct machines machines;
	struct bench_list list;
	struct bench bench;

	make_image(&bench, 5, false);
	begin(&bench, HANDLER);
	tnt(&bench, true); /* at iret */
	tip(&bench, HANDLER);
	tnt(&bench, true);
	end(&bench, HANDLER);
	make_machines(&bench, &machines);
	bench_queue_add(&queue, bench.trace.data, bench.trace.size, false);
	bench_decode(&queue.queue, &config, &machines, 0, &list);
	assert_true(list.gaps > 0);
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].is_gap)
			assert_int_equal(list.items[i].gap, GAP_MISMATCH);
	bench_list_free(&list);
	bench_queue_free(&queue);
	machines_free(&machines);
	vec_free(&bench.truth);
	pt_bytes_free(&bench.trace);
}

static struct sim_options with_labels(uint64_t seed)
{
	struct sim_options options = sim_options_plain(seed);

	options.labels = true;
	options.pt.compress_returns = seed & 1;
	options.pt.long_tnt = seed & 2;
	options.pt.defer_tips = seed & 4;
	return options;
}

enum { RESYNC = 8, APART = 400 };

static bool is_same(const struct bench_list *list, size_t i, const struct sim_vm *vm, size_t k)
{
	for (size_t n = 0; n < RESYNC; n++)
		if (i + n >= list->count || k + n >= vm->truth.count ||
		    list->items[i + n].ip != vm->truth.items[k + n].ip)
			return false;
	return true;
}

/* The distances, in decoded and in true instructions, to where both agree again. */
static bool find_again(const struct bench_list *list, size_t i, const struct sim_vm *vm, size_t k,
		       size_t *ret_wrong, size_t *ret_missing)
{
	for (size_t sum = 1; sum < APART; sum++)
		for (size_t wrong = 0; wrong <= sum; wrong++)
			if (is_same(list, i + wrong, vm, k + sum - wrong)) {
				*ret_wrong = wrong;
				*ret_missing = sum - wrong;
				return true;
			}
	return false;
}

/* Instructions that were decoded and did not run. */
static size_t count_wrong(const struct bench_list *list, const struct sim_vm *vm)
{
	size_t i = 0, k = 0, count = 0, wrong, missing;

	while (i < list->count && k < vm->truth.count) {
		if (list->items[i].ip == vm->truth.items[k].ip && !list->items[i].is_gap) {
			i++;
			k++;
			continue;
		}
		if (!find_again(list, i, vm, k, &wrong, &missing))
			break;
		for (size_t n = 0; n < wrong; n++)
			count += !list->items[i + n].is_gap;
		i += wrong;
		k += missing;
	}
	return count;
}

struct outcome {
	size_t gaps, wrong;
	bool right; /* the flow is the truth */
};

/* Decode with the code as it was at first, and look for labels or do not. */
static struct outcome decode_sim(const struct sim_options *options, bool is_looking)
{
	struct pt_config config = bench_config(options);
	struct bench_queue queue = { 0 };
	struct machines machines;
	struct bench_list list;
	struct outcome ret;
	struct sim_vm vm;

	sim_vm_run(options, &vm);
	assert_true(bench_machines(&vm, &machines));
	bench_queue_add(&queue, vm.pt.out.data, vm.pt.out.size, false);
	(is_looking ? bench_decode : bench_decode_as_copied)(&queue.queue, &config, &machines, 0,
							     &list);
	ret = (struct outcome){ .gaps = list.gaps,
				.wrong = count_wrong(&list, &vm),
				.right = list.count == vm.truth.count };
	for (size_t i = 0; i < list.count && ret.right; i++)
		ret.right = list.items[i].ip == vm.truth.items[i].ip;
	bench_list_free(&list);
	bench_queue_free(&queue);
	machines_free(&machines);
	sim_vm_free(&vm);
	return ret;
}

static void labels_that_do_not_change_do_no_harm(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct sim_options options = with_labels(seed);
		struct outcome outcome = decode_sim(&options, true);

		assert_int_equal(outcome.gaps, 0);
		assert_true(outcome.right);
	}
}

/* Made-up code has ways that the same packets fit, so that not all labels can be found. But what is
 * taken for one must not be worse than nothing. */
static void labels_that_change_are_found_or_left(void **state)
{
	struct outcome all[2] = { { 0 } };

	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct sim_options options = with_labels(seed);

		options.label_start = 40;
		for (int is_looking = 0; is_looking < 2; is_looking++) {
			struct outcome outcome = decode_sim(&options, is_looking);

			all[is_looking].gaps += outcome.gaps;
			all[is_looking].wrong += outcome.wrong;
		}
	}
	assert_true(all[1].gaps < all[0].gaps);
	assert_true(all[1].wrong < all[0].wrong);
}

static void where_little_is_expected_little_is_done(void **state)
{
	static struct pt_flow flow;
	uint64_t usual, least;

	flow_patch_init(&flow);
	usual = flow.patches.work;
	flow_patch_expect_little(&flow);
	least = flow.patches.work;
	assert_true(least && least < usual);
	flow.patches.work = least - 1;
	flow_patch_expect_little(&flow);
	assert_int_equal(flow.patches.work, least - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_label_has_the_other_form),
		cmocka_unit_test(a_label_changes_while_it_is_traced),
		cmocka_unit_test(a_label_changes_back),
		cmocka_unit_test(two_labels_change_at_once),
		cmocka_unit_test(what_no_label_explains_stays_a_gap),
		cmocka_unit_test(labels_that_do_not_change_do_no_harm),
		cmocka_unit_test(labels_that_change_are_found_or_left),
		cmocka_unit_test(where_little_is_expected_little_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
