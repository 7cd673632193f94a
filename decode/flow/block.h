/* The basic block, the unit of flow, and the cache that keeps each once per address space.
 *
 * A block runs from its address through direct jumps and calls up to the next instruction that a
 * packet must decide. Blocks of code that never changes point to their successors, so that
 * following the trace is following pointers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/arena.h"
#include "decode/code/ftrace_table.h"
#include "decode/code/machine.h"
#include "decode/code/x86_insn.h"

enum block_end {
	BLOCK_GOES_ON,     /* to `next` without a packet: the block has its greatest length, or code
			    * of another validity follows */
	BLOCK_CONDITIONAL, /* one TNT bit: `next` or `target` */
	BLOCK_RETURN,      /* near return */
	BLOCK_INDIRECT,    /* near jump or call by a TIP */
	BLOCK_UD,  /* by an exception only: a FUP at the last instruction, which never completes */
	BLOCK_FAR, /* far transfer by a TIP; `next` where it does not happen (VM entry failed) */
	BLOCK_NO_CODE, /* the last instruction's successor `next` has no bytes; no instructions at
			* all if that is the block's own address */
};

enum { BLOCK_MAX_INSNS = 128 };

struct block_text;
struct branch_text;
struct code_generation;
struct code_pool;
struct machines;
struct pooled_block;

struct block {
	/* what following the trace touches, in one cache line */
	uint64_t ip;
	struct block
		*successor[2]; /* not taken, taken (or the last target of an indirect branch) */
	uint64_t next, target;
	uint16_t count; /* instructions */
	uint16_t push_count;
	uint8_t end;  /* enum block_end */
	bool timed;   /* from_ns, to_ns are limits, or it must be met each time: no links go to or
		       * from it */
	bool patched; /* has an instruction that was found patched: no links go to or from it */
	bool astray;  /* begins inside of an instruction of a module: neither to this one */
	const struct insn *insns; /* block_pushes() is behind them */
	struct block *chain;      /* in the cache's table */

	uint64_t from_ns, to_ns;      /* the code was this in [from, to) */
	struct block_text *lines;     /* block_text.h: prepared for printing */
	struct branch_text *branches; /* branch_text.h: the same of branches */
	struct code_space *space;
	struct pooled_block *pooled; /* code_pool.h: the same for other threads; NULL: none */
	struct block *variants; /* the same up to an instruction that is another: block_variant() */
	bool straight;          /* it has no direct jump or call */
	uint32_t stamp;         /* met_sites.h: who noted it last */
};

/** Code of one address space in one mode: the kernel of a machine, or one of its processes. */
struct code_space {
	struct machine *machine; /* NULL: a guest that nothing is known of */
	int32_t pid;             /* -1: the kernel */
	uint8_t bits;
	struct block **slots;
	size_t count, mask;
	struct code_space *next;
	struct code_view view; /* of code that never changes, from view_ip; left 0: none yet */
	uint64_t view_ip;
};

/** An instruction of a kernel that was found patched. */
struct code_site {
	const struct machine *machine;
	uint64_t ip;
};

/** Functions of a kernel that were found traced. */
struct code_traced {
	const struct machine *machine;
	const struct ftrace_table *table;
	bool is_all; /* else only what trampolines are made of */
};

/** All address spaces met so far. One thread's, which may share what blocks are made of with
 * others; memory is bounded by code_is_full(). */
struct code {
	const struct machines *machines;
	struct code_space *spaces, *last;
	struct code_pool *pool;             /* what other threads know, too; NULL: nothing */
	struct code_generation *generation; /* of the pool, in which the parts of blocks are */
	uint8_t *spare;                     /* of that, for parts to come */
	size_t spare_bytes;
	struct arena arena;
	struct stretch *stretches; /* stretch.h: what is remembered; NULL: nothing */
	size_t slot_bytes;         /* of the tables of spaces, which are not in the arena */
	size_t most_bytes;         /* of both, before all should be dropped */
	/* The host's __switch_to, where a block always begins that is met each time, as the process
	 * changes there; 0 unknown. */
	uint64_t switch_ip;
	struct {
		struct code_site *items;
		size_t count, room;
	} sites; /* by address; blocks with one of them are `patched` */
	struct {
		struct code_traced *items;
		size_t count, room;
	} traced;            /* so are blocks with what these have, */
	bool is_all_patched; /* or all of kernels, since not all of them are known */
};

/** Begin without any code. `machines` must outlive it, and so must `pool`, if that is set then. */
void code_init(struct code *code, const struct machines *machines);
/** Release everything. */
void code_free(struct code *code);

/** The part of code_space_get() for a space that was not asked for last. */
struct code_space *code_space_find(struct code *code, struct machine *machine, int32_t pid,
				   uint8_t bits);

/** The address space for code at `ip`; `machine` may be NULL. NULL when memory is out. */
static inline struct code_space *code_space_get(struct code *code, struct machine *machine,
						int32_t pid, uint64_t ip, uint8_t bits)
{
	struct code_space *last = code->last;

	if (ip >> 63)
		pid = -1;
	else if (pid < 0)
		pid = 0; /* unknown, and not the kernel */
	if (last && last->machine == machine && last->pid == pid && last->bits == bits)
		return last;
	return code_space_find(code, machine, pid, bits);
}

/** The block at `ip` as it was at `time_ns`, which has no instructions where no code is known. NULL
 * when memory is out. */
struct block *block_get(struct code *code, struct code_space *space, uint64_t ip, uint64_t time_ns);

/** From now on blocks of kernels with the instructions at these sites are `patched`; without
 * memory, or with too many sites, all of kernels are. */
void code_add_sites(struct code *code, const struct code_site *sites, size_t count);

/** No blocks are `patched` any more, but those that are astray. */
void code_forget_patched(struct code *code);

/** The same for blocks with an instruction of a table, or only those that may stand for a
 * trampoline. The table is borrowed. */
void code_add_traced(struct code *code, const struct code_traced *traced);

/**
 * The same block with other bytes for instruction `index`, with which it ends.
 *
 * @bytes  of one instruction of 64-bit code, `size` of them, at most INSN_MAX_SIZE; copied
 *
 * Lives as long as `block`. NULL when the bytes are no instruction, or memory is out.
 */
struct block *block_variant(struct code *code, struct block *block, unsigned index,
			    const uint8_t *bytes, size_t size);

/** `size` zeroed bytes for a part of a block, which last as long as it does for all threads that
 * have it. NULL when memory is out. */
void *block_alloc(struct code *code, const struct block *block, size_t size);

/** Whether a block is the one at `ip` as it was at a time. */
static inline bool block_is_at(const struct block *block, uint64_t ip, uint64_t time_ns)
{
	return block->ip == ip &&
	       (!block->timed || (time_ns >= block->from_ns && time_ns < block->to_ns));
}

/** The slot of a table whose chain an address is in. */
static inline size_t block_slot(uint64_t ip, size_t mask)
{
	return (size_t)((ip * 0x9e3779b97f4a7c15) >> 32) & mask;
}

/** The block at `ip` if the space has it already, its code never changes and is as copied; NULL
 * otherwise. */
static inline struct block *block_known(const struct code_space *space, uint64_t ip)
{
	struct block *block = space->slots[block_slot(ip, space->mask)];

	while (block && block->ip != ip)
		block = block->chain;
	return block && !block->timed && !block->patched && block->count ? block : NULL;
}

/** The block at `ip`, to which the return or indirect branch at the end of `block` goes; NULL where
 * only block_get() can tell. */
static inline struct block *block_follow(const struct block *block, uint64_t ip)
{
	struct block *last = block->successor[1];

	if (last && last->ip == ip)
		return last;
	return block->timed || block->patched ? NULL : block_known(block->space, ip);
}

/** Whether everything should be dropped (when no block is in use), before more memory is taken than
 * `most_bytes`. */
bool code_is_full(const struct code *code);

/** Drop every block and space. */
void code_trim(struct code *code);

/** Return addresses of the calls in it, in order: `push_count` of them. */
static inline const uint64_t *block_pushes(const struct block *block)
{
	return (const uint64_t *)(block->insns + block->count);
}

/**
 * The address where the first `count` instructions of a block lead without a branch at their end:
 * that of instruction `count`, or `next`.
 */
static inline uint64_t block_ip_after(const struct block *block, unsigned count)
{
	return count < block->count ? block->insns[count].ip : block->next;
}
