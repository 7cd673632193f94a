/* From trace bytes to a list of instructions, for tests: spans, machines and pt_flow put together.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/machine.h"
#include "decode/code/machines.h"
#include "decode/flow/pt_flow.h"
#include "tests/sim_vm.h"

/** An instruction that the flow found, or a gap in it (`ip` is then what it is about). */
struct bench_item {
	uint64_t ip, tsc;
	bool nr, is_gap;
	uint8_t gap; /* enum gap_kind */
};

struct bench_list {
	struct bench_item *items;
	size_t count, room;
	size_t gaps; /* of them */
};

/** Trace bytes in spans. */
struct bench_queue {
	struct aux_queue queue;
	struct aux_span *spans;
	size_t room;
};

/** Append a span; `lost` says that data is missing before it. `data` is borrowed. */
void bench_queue_add(struct bench_queue *queue, const uint8_t *data, size_t size, bool lost);

/** Release the spans; their `data` stays. */
void bench_queue_free(struct bench_queue *queue);

/** Time stamps of a Skylake-X with MTC; 80 ticks of the TSC are one of the CTC. */
extern const struct pt_config bench_skylake_x;

/** What a recording of this simulation would say of its trace. */
struct pt_config bench_config(const struct sim_options *options);

/** A host and one guest without code. False when that fails; release with machines_free(). */
bool bench_machines_new(struct machines *ret);

/** Add a guest without code. False when that fails. */
bool bench_guest_new(struct machines *machines);

/** Give a machine code (copied). False when that fails. */
bool bench_add_code(struct machine *machine, uint64_t address, const void *bytes, size_t size);

/** Say that a function of the kernel begins there. False when that fails. */
bool bench_add_function(struct machine *machine, uint64_t address);

/** Code for the decoder: the host, and one guest that has the code of all (their addresses do not
 * overlap). False when that fails; release with machines_free(). */
bool bench_machines(const struct sim_vm *vm, struct machines *ret);

/** Decode in segments of at least `min_size` bytes; free the list with bench_list_free(). `ret` may
 * be NULL: what is found is not kept. */
void bench_decode(const struct aux_queue *queue, const struct pt_config *config,
		  const struct machines *machines, uint64_t min_size, struct bench_list *ret);

/** The same in segments that are as small as can be, with what was patched inferred from all. With
 * `forgets`, each begins without code that was read before. */
void bench_decode_informed(const struct aux_queue *queue, const struct pt_config *config,
			   const struct machines *machines, bool forgets, struct bench_list *ret);

/** The gaps alone, and how many instructions ran, found with `gaps_only` as in pt_flow_init() or
 * without. */
struct bench_count {
	struct bench_list gaps;
	uint64_t insns;
};

/** Decode as bench_decode() does, for a count; free its list with bench_list_free(). */
void bench_count(const struct aux_queue *queue, const struct pt_config *config,
		 const struct machines *machines, bool gaps_only, struct bench_count *ret);

/** bench_count() with `gaps_only`, and no room for code: it is forgotten as soon as it can be. */
void bench_count_forgetting(const struct aux_queue *queue, const struct pt_config *config,
			    const struct machines *machines, struct bench_count *ret);

/** The same, but code is what it is, whatever the packets say: no jump label is ever patched. */
void bench_decode_as_copied(const struct aux_queue *queue, const struct pt_config *config,
			    const struct machines *machines, uint64_t min_size,
			    struct bench_list *ret);

/** Release the items. */
void bench_list_free(struct bench_list *list);
