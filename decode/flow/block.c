#include "decode/flow/block.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/code/machines.h"
#include "decode/flow/code_pool.h"
#include "decode/flow/stretch.h"

enum {
	FIRST_SLOTS = 1 << 10,
	MOST_BYTES = 96 << 20,   /* of blocks, unless there is a reason for less */
	SPARE_BYTES = 256 << 10, /* what is usually added until somebody asks again */
	MOST_SITES = 1 << 16,
	PARTS_BYTES = 16 << 10, /* taken from a generation at a time */
	PART_ALIGN = 16,
	JOINED_SIZE = 2 * INSN_MAX_SIZE,
	ASTRAY_BYTES = 8 << 10, /* from the symbol before, that are looked at for each block */
};

void code_init(struct code *code, const struct machines *machines)
{
	*code = (struct code){ .machines = machines,
			       .most_bytes = MOST_BYTES,
			       .arena.is_huge = true };
	if (machines->host)
		code->switch_ip = machine_switch_to(machines->host);
}

void code_trim(struct code *code)
{
	for (struct code_space *space = code->spaces; space; space = space->next)
		free(space->slots);
	code->stretches = NULL;
	code->spaces = code->last = NULL;
	code->slot_bytes = 0;
	arena_free(&code->arena);
	if (code->generation)
		code_pool_leave(code->pool, code->generation);
	code->generation = NULL;
	code->spare_bytes = 0;
}

void code_free(struct code *code)
{
	code_trim(code);
	vec_free(&code->sites);
	vec_free(&code->traced);
}

bool code_is_full(const struct code *code)
{
	const struct arena *arena = &code->arena;
	size_t used = arena->total - (arena->size - arena->used);

	if (code->generation && code_generation_is_full(code->generation))
		return true;
	return used && used + code->slot_bytes + SPARE_BYTES > code->most_bytes;
}

/* Memory that lasts as long as other threads may use it. */
static void *alloc_shared(struct code *code, size_t size)
{
	void *ret;

	if (!code->generation)
		return arena_alloc(&code->arena, size);
	size = size ? (size + PART_ALIGN - 1) & ~(size_t)(PART_ALIGN - 1) : PART_ALIGN;
	if (size > PARTS_BYTES / 4)
		return code_pool_alloc(code->pool, code->generation, size);
	if (size > code->spare_bytes) {
		code->spare = code_pool_alloc(code->pool, code->generation, PARTS_BYTES);
		code->spare_bytes = code->spare ? PARTS_BYTES : 0;
	}
	if (size > code->spare_bytes)
		return NULL;
	ret = code->spare;
	code->spare += size;
	code->spare_bytes -= size;
	return ret;
}

void *block_alloc(struct code *code, const struct block *block, size_t size)
{
	return block->pooled ? alloc_shared(code, size) : arena_alloc(&code->arena, size);
}

static bool is_space(const struct code_space *space, const struct machine *machine, int32_t pid,
		     uint8_t bits)
{
	return space->machine == machine && space->pid == pid && space->bits == bits;
}

/* The space, first in the list from now on: a process that calls the kernel needs the same two
 * again and again, and there may be thousands. NULL: there is none yet. */
static struct code_space *find_space(struct code *code, const struct machine *machine, int32_t pid,
				     uint8_t bits)
{
	struct code_space **link = &code->spaces, *space;

	while (*link && !is_space(*link, machine, pid, bits))
		link = &(*link)->next;
	space = *link;
	if (!space)
		return NULL;
	*link = space->next;
	space->next = code->spaces;
	code->spaces = space;
	return space;
}

struct code_space *code_space_find(struct code *code, struct machine *machine, int32_t pid,
				   uint8_t bits)
{
	struct code_space *space = find_space(code, machine, pid, bits);

	if (space)
		return code->last = space;
	space = arena_alloc(&code->arena, sizeof(*space));
	if (!space)
		return NULL;
	*space = (struct code_space){ .machine = machine,
				      .pid = pid,
				      .bits = bits,
				      .mask = FIRST_SLOTS - 1,
				      .next = code->spaces };
	space->slots = calloc(FIRST_SLOTS, sizeof(struct block *));
	if (!space->slots)
		return NULL;
	code->slot_bytes += FIRST_SLOTS * sizeof(struct block *);
	code->spaces = space;
	return code->last = space;
}

/* Twice as many chains. */
static void grow(struct code *code, struct code_space *space)
{
	size_t mask = space->mask * 2 + 1;
	struct block **slots = calloc(mask + 1, sizeof(struct block *));

	if (!slots)
		return; /* the chains get longer, that is all */
	for (size_t i = 0; i <= space->mask; i++) {
		while (space->slots[i]) {
			struct block *block = space->slots[i];
			size_t slot = block_slot(block->ip, mask);

			space->slots[i] = block->chain;
			block->chain = slots[slot];
			slots[slot] = block;
		}
	}
	free(space->slots);
	code->slot_bytes += (mask - space->mask) * sizeof(struct block *);
	space->slots = slots;
	space->mask = mask;
}

/* A block in the making, with room for the longest. */
struct draft {
	struct insn insns[BLOCK_MAX_INSNS];
	uint64_t pushes[BLOCK_MAX_INSNS];
	unsigned count, push_count;
	bool straight;
	uint64_t from_ns, to_ns;
	struct code_view view; /* where the last instruction is, from view_ip */
	uint64_t view_ip;
};

/* Its arrays are filled as far as they count. */
static void draft_begin(struct draft *draft, const struct code_space *space, uint64_t from_ns,
			uint64_t to_ns)
{
	draft->count = draft->push_count = 0;
	draft->straight = true;
	draft->from_ns = from_ns;
	draft->to_ns = to_ns;
	draft->view = space->view;
	draft->view_ip = space->view_ip;
}

/* The code from `ip` on, enough for one instruction: if that lies in two pieces of the image, a
 * copy of both parts. */
static int code_bytes(struct code *code, const struct code_space *space, uint64_t ip,
		      uint64_t time_ns, struct code_view *ret)
{
	struct code_view next;
	uint8_t *joined;
	int r;

	if (!space->machine) {
		ret->from = 0;
		ret->to = UINT64_MAX;
		return -PTVM_NO_CODE;
	}
	r = machine_code(space->machine, space->pid, ip, time_ns, ret);
	if (r || ret->left >= INSN_MAX_SIZE)
		return r;
	r = machine_code(space->machine, space->pid, ip + ret->left, time_ns, &next);
	ret->from = ret->from > next.from ? ret->from : next.from;
	ret->to = ret->to < next.to ? ret->to : next.to;
	if (r)
		return 0;
	joined = alloc_shared(code, JOINED_SIZE);
	if (!joined)
		return -PTVM_NO_CODE;
	if (next.left > INSN_MAX_SIZE)
		next.left = INSN_MAX_SIZE;
	memcpy(joined, ret->data, ret->left);
	memcpy(joined + ret->left, next.data, next.left);
	ret->data = joined;
	ret->left += next.left;
	return 0;
}

/* Set the draft's view of the code to begin at `ip`. */
static int view_code(struct code *code, struct code_space *space, uint64_t ip, uint64_t time_ns,
		     struct draft *draft)
{
	struct code_view *view = &draft->view;
	int r = code_bytes(code, space, ip, time_ns, view);

	draft->view_ip = ip;
	draft->from_ns = draft->from_ns > view->from ? draft->from_ns : view->from;
	draft->to_ns = draft->to_ns < view->to ? draft->to_ns : view->to;
	/* A copy of parts is not for blocks that lie elsewhere than this one. */
	if (!r && !view->from && view->to == UINT64_MAX && view->left > JOINED_SIZE) {
		space->view = *view;
		space->view_ip = ip;
	}
	return r;
}

static int read_insn(struct code *code, struct code_space *space, uint64_t ip, uint64_t time_ns,
		     struct draft *draft, struct insn *ret)
{
	const struct code_view *view = &draft->view;
	uint64_t on = ip - draft->view_ip;
	int r;

	if (on >= view->left || view->left - on < INSN_MAX_SIZE) {
		r = view_code(code, space, ip, time_ns, draft);
		if (r)
			return r;
		on = 0;
	}
	return insn_read(view->data + on, view->left - on, ip, space->bits, ret);
}

static enum block_end end_of(const struct insn *insn)
{
	switch ((enum insn_class)insn->class) {
	case INSN_JCC: return BLOCK_CONDITIONAL;
	case INSN_RET: return BLOCK_RETURN;
	case INSN_JMP_INDIRECT: return BLOCK_INDIRECT;
	case INSN_CALL_INDIRECT: return BLOCK_INDIRECT;
	case INSN_PLAIN:
	case INSN_JMP:
	case INSN_CALL: return BLOCK_GOES_ON;
	case INSN_UD: return BLOCK_UD;
	default: return BLOCK_FAR;
	}
}

/* A call to the next instruction only asks where it is: hardware does not push it (SDM "RET
 * Compression"). */
static void note_push(struct draft *draft, const struct insn *insn)
{
	bool is_call = insn->class == INSN_CALL || insn->class == INSN_CALL_INDIRECT;

	if (is_call && !(insn->class == INSN_CALL && insn->target == insn_next(insn)))
		draft->pushes[draft->push_count++] = insn_next(insn);
}

static bool goes_to_target(const struct insn *insn)
{
	return insn->class == INSN_JMP || insn->class == INSN_CALL;
}

/* Nobody goes where a kernel's memory for code is not in use: it is full of INT3s (mm/execmem.c,
 * kernel/bpf/core.c). There was code when the CPU came. */
static bool is_unused(const struct draft *draft, const struct insn *insn)
{
	enum { INT3 = 0xcc };
	const uint8_t *bytes = insn->bytes;

	return insn->ip >> 63 && bytes[0] == INT3 &&
	       draft->view.left - (insn->ip - draft->view_ip) >= INSN_MAX_SIZE &&
	       !memcmp(bytes, bytes + 1, INSN_MAX_SIZE - 1);
}

static enum block_end gather(struct code *code, struct code_space *space, uint64_t ip,
			     uint64_t time_ns, struct draft *draft, uint64_t *next)
{
	enum block_end end = BLOCK_GOES_ON;

	while (draft->count < BLOCK_MAX_INSNS && end == BLOCK_GOES_ON &&
	       !(draft->count && ip == code->switch_ip)) {
		struct insn *insn = &draft->insns[draft->count];

		*next = ip;
		if (read_insn(code, space, ip, time_ns, draft, insn))
			return BLOCK_NO_CODE;
		if (!draft->count && is_unused(draft, insn))
			return BLOCK_NO_CODE;
		draft->count++;
		ip = insn_next(insn);
		if (insn->class != INSN_PLAIN) {
			note_push(draft, insn);
			end = end_of(insn);
			if (goes_to_target(insn)) {
				ip = insn->target;
				draft->straight = false;
			}
		}
		*next = ip;
		/* kernel and user code are in different spaces */
		if ((ip ^ insn->ip) >> 63)
			break;
	}
	return end;
}

static size_t parts_size(const struct draft *draft)
{
	return draft->count * sizeof(struct insn) + draft->push_count * sizeof(uint64_t);
}

/* `parts` has room for its parts, or is NULL. */
static struct block *store(struct code *code, const struct draft *draft, uint8_t *parts)
{
	struct block *block = arena_alloc_line(&code->arena, sizeof(*block));
	size_t insns_size = draft->count * sizeof(struct insn);

	if (!block || !parts)
		return NULL;
	memcpy(parts, draft->insns, insns_size);
	memcpy(parts + insns_size, draft->pushes, parts_size(draft) - insns_size);
	block->insns = (const struct insn *)parts;
	block->count = (uint16_t)draft->count;
	block->push_count = (uint16_t)draft->push_count;
	block->straight = draft->straight;
	block->from_ns = draft->from_ns;
	block->to_ns = draft->to_ns;
	block->timed = draft->from_ns != 0 || draft->to_ns != UINT64_MAX;
	return block;
}

static int compare_sites(const void *a, const void *b)
{
	const struct code_site *left = a, *right = b;

	if (left->ip != right->ip)
		return left->ip < right->ip ? -1 : 1;
	return ((uintptr_t)left->machine > (uintptr_t)right->machine) -
	       ((uintptr_t)left->machine < (uintptr_t)right->machine);
}

/* Whether a site is among the first `count` that are known. */
static bool is_among(const struct code *code, size_t count, const struct code_site *site)
{
	return count && bsearch(site, code->sites.items, count, sizeof(*site), compare_sites);
}

/* Whether there is a site in [from, to], of whatever machine. */
static bool is_near_site(const struct code *code, uint64_t from, uint64_t to)
{
	const struct code_site *items = code->sites.items;
	size_t at = search_sorted(code->sites.count, i, items[i].ip < from);

	return at < code->sites.count && items[at].ip <= to;
}

static bool has_site(const struct code *code, const struct block *block)
{
	if (!block->count ||
	    (block->straight && !is_near_site(code, block->ip, block->insns[block->count - 1].ip)))
		return false;
	for (unsigned i = 0; i < block->count; i++) {
		const struct code_site site = { block->space->machine, block->insns[i].ip };

		if (is_among(code, code->sites.count, &site))
			return true;
	}
	return false;
}

static bool is_of_traced(const struct code_traced *traced, const struct block *block)
{
	if (block->space->machine != traced->machine || block->space->pid >= 0)
		return false;
	if (ftrace_table_has_caller(traced->table, block->ip))
		return true;
	for (unsigned i = 0; i < block->count && traced->is_all; i++)
		if (ftrace_table_has(traced->table, &block->insns[i]) ||
		    ftrace_table_static_call(traced->table, block->insns[i].ip))
			return true;
	return false;
}

static bool is_patched(const struct code *code, const struct block *block)
{
	if (code->is_all_patched)
		return block->space->pid < 0;
	for (size_t i = 0; i < code->traced.count; i++)
		if (is_of_traced(&code->traced.items[i], block))
			return true;
	return has_site(code, block);
}

/* Whether `ip` is in an instruction of a kernel's module, not at its beginning, if what is between
 * it and the symbol before is code. Nobody goes there: it is other code than that. The draft holds
 * no longer than what this was found by. */
static bool is_astray(struct code *code, struct code_space *space, uint64_t ip, uint64_t time_ns,
		      struct draft *draft)
{
	struct draft before;
	struct insn insn;
	uint64_t at;

	if (!space->machine || space->pid >= 0 || space->bits != 64 ||
	    !machine_module_start(space->machine, ip, time_ns, &at) || ip - at > ASTRAY_BYTES)
		return false;
	draft_begin(&before, space, draft->from_ns, draft->to_ns);
	while (at < ip && !read_insn(code, space, at, time_ns, &before, &insn))
		at = insn_next(&insn);
	draft->from_ns = before.from_ns;
	draft->to_ns = before.to_ns;
	return at > ip;
}

/* Who goes there comes from an INT3, which the code as copied need not have: flow_int3.h must see.
 */
static bool is_int3_handler(const struct code_space *space, uint64_t ip)
{
	return space->machine && space->pid < 0 && machine_int3_handler(space->machine) == ip;
}

/* From now on other threads find what the block is made of. */
static void share(struct code *code, struct block *block)
{
	struct pooled_block *room = alloc_shared(code, sizeof(*room));

	if (room)
		block->pooled = code_generation_add(code->generation, block, room);
}

/* A block that another thread has read. */
static struct block *take_pooled(struct code *code, struct code_space *space,
				 struct pooled_block *pooled)
{
	struct block *block = arena_alloc_line(&code->arena, sizeof(*block));

	if (!block)
		return NULL;
	*block = pooled->block;
	block->space = space;
	block->pooled = pooled;
	return block;
}

static struct block *read_block(struct code *code, struct code_space *space, uint64_t ip,
				uint64_t time_ns)
{
	struct draft draft;
	struct block *block;
	enum block_end end;
	uint64_t next = ip;
	bool astray;

	draft_begin(&draft, space, 0, UINT64_MAX);
	end = gather(code, space, ip, time_ns, &draft, &next);
	astray = is_astray(code, space, ip, time_ns, &draft);
	block = store(code, &draft, alloc_shared(code, parts_size(&draft)));
	if (!block)
		return NULL;
	block->ip = ip;
	block->end = (uint8_t)end;
	block->next = next;
	block->space = space;
	block->astray = astray;
	block->timed |= is_int3_handler(space, ip) || ip == code->switch_ip;
	if (end == BLOCK_CONDITIONAL)
		block->target = draft.insns[draft.count - 1].target;
	if (code->generation)
		share(code, block);
	return block;
}

static struct block *build(struct code *code, struct code_space *space, uint64_t ip,
			   uint64_t time_ns)
{
	struct pooled_block *pooled = NULL;
	struct block *block;

	if (code->pool && !code->generation)
		code->generation = code_pool_join(code->pool);
	if (code->generation)
		pooled = code_generation_find(code->generation, space, ip, time_ns);
	block = pooled ? take_pooled(code, space, pooled) : read_block(code, space, ip, time_ns);
	if (block)
		block->patched = block->astray || is_patched(code, block);
	return block;
}

struct block *block_get(struct code *code, struct code_space *space, uint64_t ip, uint64_t time_ns)
{
	size_t slot = block_slot(ip, space->mask);
	struct block *block;

	for (block = space->slots[slot]; block; block = block->chain)
		if (block_is_at(block, ip, time_ns))
			return block;
	block = build(code, space, ip, time_ns);
	if (!block)
		return NULL;
	block->chain = space->slots[slot];
	space->slots[slot] = block;
	if (++space->count > space->mask)
		grow(code, space);
	return block;
}

static void unlink_patched(struct block *block)
{
	for (int way = 0; way < 2; way++)
		if (block->patched || (block->successor[way] && block->successor[way]->patched))
			block->successor[way] = NULL;
}

static void mark_patched(const struct code *code, struct code_space *space)
{
	struct block *block;

	for (size_t i = 0; i <= space->mask; i++)
		for (block = space->slots[i]; block; block = block->chain)
			block->patched |= is_patched(code, block);
	for (size_t i = 0; i <= space->mask; i++)
		for (block = space->slots[i]; block; block = block->chain)
			unlink_patched(block);
}

/* What is patched has changed. */
static void mark_all_patched(struct code *code)
{
	for (struct code_space *space = code->spaces; space; space = space->next)
		if (space->pid < 0)
			mark_patched(code, space);
	stretch_table_clear(code);
}

void code_add_sites(struct code *code, const struct code_site *sites, size_t count)
{
	size_t known = code->sites.count;
	bool fits = true;

	for (size_t i = 0; i < count && fits && !code->is_all_patched; i++)
		if (!is_among(code, known, &sites[i]))
			fits = code->sites.count < MOST_SITES && vec_push(&code->sites, sites[i]);
	code->is_all_patched |= !fits;
	if (code->sites.count == known && fits)
		return;
	sort_vec(&code->sites, compare_sites);
	mark_all_patched(code);
}

void code_forget_patched(struct code *code)
{
	struct block *block;

	code->sites.count = code->traced.count = 0;
	code->is_all_patched = false;
	for (struct code_space *space = code->spaces; space; space = space->next)
		for (size_t i = 0; space->pid < 0 && i <= space->mask; i++)
			for (block = space->slots[i]; block; block = block->chain)
				block->patched = block->astray;
}

void code_add_traced(struct code *code, const struct code_traced *traced)
{
	for (size_t i = 0; i < code->traced.count; i++)
		if (code->traced.items[i].table == traced->table &&
		    code->traced.items[i].is_all >= traced->is_all)
			return;
	code->is_all_patched |= !vec_push(&code->traced, *traced);
	mark_all_patched(code);
}

/* Read an instruction again, from other bytes. */
static bool patch_insn(struct code *code, struct insn *insn, const uint8_t *bytes, size_t size)
{
	uint8_t *copy = arena_alloc(&code->arena, INSN_MAX_SIZE);

	if (!copy)
		return false;
	memcpy(copy, bytes, size);
	return !insn_read(copy, size, insn->ip, 64, insn);
}

static bool has_bytes(const struct block *variant, unsigned index, const uint8_t *bytes,
		      size_t size)
{
	const struct insn *last = &variant->insns[variant->count - 1];

	return variant->count == index + 1 && last->length == size &&
	       !memcmp(last->bytes, bytes, size);
}

struct block *block_variant(struct code *code, struct block *block, unsigned index,
			    const uint8_t *bytes, size_t size)
{
	struct draft draft;
	struct block *variant;
	struct insn *last;

	for (variant = block->variants; variant; variant = variant->variants)
		if (has_bytes(variant, index, bytes, size))
			return variant;
	draft_begin(&draft, block->space, block->from_ns, block->to_ns);
	draft.count = index + 1;
	memcpy(draft.insns, block->insns, draft.count * sizeof(*draft.insns));
	last = &draft.insns[index];
	if (!patch_insn(code, last, bytes, size))
		return NULL;
	draft.straight = block->straight && !goes_to_target(last);
	for (unsigned i = 0; i <= index; i++)
		note_push(&draft, &draft.insns[i]);
	variant = store(code, &draft, arena_alloc(&code->arena, parts_size(&draft)));
	if (!variant)
		return NULL;
	variant->ip = block->ip;
	variant->end = (uint8_t)end_of(last);
	variant->next = goes_to_target(last) ? last->target : insn_next(last);
	variant->target = last->target;
	variant->patched = true;
	variant->space = block->space;
	variant->variants = block->variants;
	block->variants = variant;
	return variant;
}
