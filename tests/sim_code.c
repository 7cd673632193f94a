#include "tests/sim_code.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/vec.h"
#include "tests/sim_random.h"

/* An instruction before its address is known: where it goes is an item of its function, or another
 * function. An item is a unit of structured code, entered only at its first instruction. */
struct draft {
	uint8_t bytes[15];
	uint8_t size, field; /* `field` bytes of displacement at the end; 0 none */
	enum sim_kind kind;
	int item, function; /* target, -1 none */
	bool guard, is_nop;
};

struct builder {
	const struct sim_code_options *options;
	struct sim_code *code;
	struct sim_random random;
	unsigned function;
	struct {
		struct draft *items;
		size_t count, room;
	} drafts; /* of this function */
	struct {
		size_t *items;
		size_t count, room;
	} starts; /* the first draft of each item */
	struct {
		struct draft *items;
		size_t count, room;
	} done; /* of all functions, beside code->insns */
	bool after_label;
};

static unsigned below(struct builder *b, unsigned limit)
{
	return sim_random_below(&b->random, limit);
}

static struct draft *draft(struct builder *b, enum sim_kind kind, const void *bytes, size_t size)
{
	struct draft *d;

	if (!vec_push(&b->drafts, (struct draft){ .kind = kind, .item = -1, .function = -1 }))
		abort();
	d = &b->drafts.items[b->drafts.count - 1];
	memcpy(d->bytes, bytes, size);
	d->size = (uint8_t)size;
	return d;
}

static void begin_item(struct builder *b)
{
	if (!vec_push(&b->starts, b->drafts.count))
		abort();
}

/* Instructions of every length, with the encodings that mislead length decoders: prefixes, the
 * opcodes that VEX and EVEX took over, immediates whose size depends on the mode. */
struct pattern {
	uint8_t size, bytes[15];
};

static const struct pattern plain64[] = {
	{ 1, { 0x90 } },
	{ 2, { 0x31, 0xc0 } },
	{ 2, { 0x66, 0x90 } },
	{ 3, { 0x48, 0x89, 0xc3 } },
	{ 4, { 0xf3, 0x0f, 0x1e, 0xfa } },
	{ 4, { 0x48, 0x83, 0xc0, 0x08 } },
	{ 5, { 0x0f, 0x1f, 0x44, 0, 0 } },
	{ 3, { 0xc5, 0xf8, 0x77 } },
	{ 6, { 0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1 } },
	{ 6, { 0x48, 0x05, 0x0f, 0x84, 0, 0 } },
	{ 7, { 0x8b, 0x04, 0x25, 0xe8, 0xc3, 0xeb, 0xfe } },
	{ 8, { 0x48, 0xc7, 0x04, 0x24, 0xe9, 0, 0, 0 } },
	{ 10, { 0x48, 0xb8, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3 } },
	{ 11, { 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 } },
};

static const struct pattern plain32[] = {
	{ 1, { 0x90 } },
	{ 1, { 0x40 } },
	{ 2, { 0x89, 0xc3 } },
	{ 2, { 0xc4, 0x02 } },
	{ 2, { 0x62, 0x02 } },
	{ 3, { 0xc5, 0xf8, 0x77 } },
	{ 4, { 0x66, 0xb8, 0xc3, 0xc3 } },
	{ 5, { 0xb8, 0xe8, 0, 0, 0 } },
	{ 5, { 0x05, 0xeb, 0xfe, 0, 0 } },
	{ 10, { 0xc7, 0x05, 0, 0, 0, 0, 0xc3, 0xc3, 0xc3, 0xc3 } },
};

static const struct pattern plain16[] = {
	{ 1, { 0x90 } },
	{ 1, { 0x48 } },
	{ 2, { 0x89, 0xd8 } },
	{ 3, { 0xb8, 0xe8, 0xc3 } },
	{ 3, { 0x05, 0xeb, 0xfe } },
	{ 3, { 0x67, 0x8b, 0x03 } },
	{ 6, { 0x66, 0xb8, 0xc3, 0xc3, 0xc3, 0xc3 } },
	{ 6, { 0xc7, 0x06, 0x0f, 0x84, 0xeb, 0xfe } },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void plain(struct builder *b)
{
	const struct pattern *from = b->options->bits == 64   ? plain64
				     : b->options->bits == 32 ? plain32
							      : plain16;
	size_t count = b->options->bits == 64   ? COUNT(plain64)
		       : b->options->bits == 32 ? COUNT(plain32)
						: COUNT(plain16);
	const struct pattern *pattern = &from[below(b, (unsigned)count)];

	draft(b, SIM_PLAIN, pattern->bytes, pattern->size);
}

static void some_plain(struct builder *b, unsigned most)
{
	for (unsigned n = below(b, most + 1); n; n--)
		plain(b);
}

static uint8_t near_field(const struct builder *b)
{
	return b->options->bits == 16 ? 2 : 4;
}

/* A branch to `item` of this function with a short displacement; layout widens it if need be. */
static struct draft *short_branch(struct builder *b, enum sim_kind kind, uint8_t opcode, int item)
{
	struct draft *d = draft(b, kind, (const uint8_t[]){ opcode, 0 }, 2);

	d->field = 1;
	d->item = item;
	return d;
}

static void widen(const struct builder *b, struct draft *d)
{
	uint8_t opcode = d->bytes[0];

	if (d->kind == SIM_JMP || d->kind == SIM_LABEL) {
		d->bytes[0] = 0xe9;
		d->size = 1;
	} else {
		d->bytes[0] = 0x0f;
		/* loop and jrcxz have no near form: any conditional one will do */
		d->bytes[1] = (uint8_t)(0x80 | (opcode & 0xf));
		d->size = 2;
	}
	d->field = near_field(b);
	d->size = (uint8_t)(d->size + d->field);
}

static struct draft *cond(struct builder *b, int item)
{
	uint8_t opcode = (uint8_t)(0x70 + below(b, 16));
	struct draft *d = short_branch(b, SIM_COND, opcode, item);

	if (below(b, 3) == 0)
		widen(b, d);
	return d;
}

static void direct_call(struct builder *b, int function)
{
	bool prefixed = b->options->bits == 64 && below(b, 8) == 0;
	struct draft *d = draft(b, SIM_CALL, prefixed ? "\x66\xe8" : "\xe8", prefixed ? 2 : 1);

	d->field = near_field(b);
	d->size = (uint8_t)(d->size + d->field);
	d->function = function;
}

/* A call to the next instruction, which only wants to know where it is. */
static void call_next(struct builder *b)
{
	struct draft *d = draft(b, SIM_CALL, "\xe8", 1);

	d->field = near_field(b);
	d->size = (uint8_t)(d->size + d->field);
	draft(b, SIM_POP, "\x59", 1);
}

/* Fill the return predictor as KVM does after a VM exit: calls that never return. */
static void stuff_returns(struct builder *b)
{
	for (int i = 0; i < 2; i++) {
		struct draft *d = draft(b, SIM_CALL, "\xe8\1\0\0\0", 5);

		d->field = 0;
		draft(b, SIM_PLAIN, "\xcc", 1); /* never run */
	}
	draft(b, SIM_POP, "\x59", 1);
	draft(b, SIM_POP, "\x48\x83\xc4\x08", 4);
}

static void indirect(struct builder *b, enum sim_kind kind)
{
	uint8_t reg = kind == SIM_CALL_INDIRECT ? 0xd0 : 0xe0;
	uint8_t mem = kind == SIM_CALL_INDIRECT ? 0x15 : 0x25;

	if (below(b, 2))
		draft(b, kind, (uint8_t[]){ 0xff, reg }, 2);
	else if (b->options->bits == 64 && below(b, 2))
		draft(b, kind, (uint8_t[]){ 0x41, 0xff, (uint8_t)(reg | 3) }, 3);
	else if (b->options->bits == 16)
		draft(b, kind, (uint8_t[]){ 0xff, (uint8_t)(mem + 1), 0, 0x10 }, 4);
	else
		draft(b, kind, (uint8_t[]){ 0xff, mem, 0, 0x10, 0, 0 }, 6);
}

static void transaction(struct builder *b, int abort_item)
{
	struct draft *d = draft(b, SIM_XBEGIN, "\xc7\xf8\0\0\0\0", 6);

	d->field = 4;
	d->item = abort_item;
	some_plain(b, 3);
	if (b->function + 1 < SIM_FUNCTIONS && b->function >= SIM_FIRST_LEAF)
		direct_call(b, (int)b->function + 1);
	draft(b, SIM_XEND, "\x0f\x01\xd5", 3);
}

static int later_leaf(struct builder *b)
{
	unsigned first = b->function < SIM_FIRST_LEAF ? SIM_FIRST_LEAF : b->function + 1;

	return first < SIM_FUNCTIONS ? (int)(first + below(b, SIM_FUNCTIONS - first)) : -1;
}

static void call_something(struct builder *b)
{
	int leaf = later_leaf(b);

	if (b->function < SIM_RECURSIVE && below(b, 4) == 0)
		direct_call(b, SIM_RECURSIVE);
	else if (leaf < 0)
		plain(b);
	else if (below(b, 3) == 0)
		indirect(b, SIM_CALL_INDIRECT);
	else
		direct_call(b, leaf);
}

static void privileged(struct builder *b)
{
	bool is64 = b->options->bits == 64;

	switch (below(b, 5)) {
	case 0: draft(b, SIM_MOV_CR3, "\x0f\x22\xd8", 3); break;
	case 1: draft(b, SIM_EXITING, "\xf4", 1); break;
	case 2: draft(b, SIM_EXITING, "\x0f\xa2", 2); break;
	case 3:
		if (!b->options->host)
			draft(b, SIM_EXITING, "\x0f\x01\xc1", 3);
		break;
	default:
		if (b->function != SIM_HANDLER)
			draft(b, SIM_INT3, is64 ? "\xcc" : "\xcd\x80", is64 ? 1 : 2);
	}
}

static void special(struct builder *b, int next)
{
	switch (below(b, 5)) {
	case 0:
		if (b->options->tsx && b->options->bits == 64)
			transaction(b, next);
		break;
	case 1:
		if (b->options->ptwrite && b->options->bits == 64)
			draft(b, SIM_PTWRITE, "\xf3\x48\x0f\xae\xe0", 5);
		break;
	case 2: call_next(b); break;
	default:
		if (!b->options->user)
			privileged(b);
		else if (b->function == SIM_MAIN)
			draft(b, SIM_SYSCALL, "\x0f\x05", 2);
	}
}

/* A jump label with the code that it jumps over. One way begins with an indirect call, the other
 * with a conditional branch, so that packets tell which was taken. */
static bool jump_label(struct builder *b, int item, int items)
{
	struct draft *d;

	if (!b->options->labels || item + 1 >= items || later_leaf(b) < 0 || below(b, 3))
		return false;
	d = short_branch(b, SIM_LABEL, 0xeb, item + 1);
	d->is_nop = below(b, 2);
	if (below(b, 2))
		widen(b, d);
	some_plain(b, 2);
	indirect(b, SIM_CALL_INDIRECT);
	some_plain(b, 2);
	short_branch(b, SIM_JMP, 0xeb, item + 1 + (int)below(b, 2));
	b->after_label = true;
	return true;
}

/* One item of a function of `items`; targets are items, the last of which is what ends it. */
static void any_item(struct builder *b, int item, int items)
{
	int ahead = item + 1 + (int)below(b, 3);

	if (ahead > items)
		ahead = items;
	some_plain(b, 3);
	if (b->after_label) {
		b->after_label = false;
		cond(b, ahead);
	}
	if (jump_label(b, item, items))
		return;
	switch (below(b, 10)) {
	case 0:
	case 1:
	case 2: cond(b, ahead); break;
	case 3: cond(b, item > 2 ? item - (int)below(b, 3) : item); break;
	case 4: short_branch(b, SIM_COND, (uint8_t)(0xe0 + below(b, 4)), item); break;
	case 5: short_branch(b, SIM_JMP, 0xeb, ahead); break;
	case 6: indirect(b, SIM_JMP_INDIRECT); break;
	case 7: call_something(b); break;
	default: special(b, item + 1);
	}
}

static void recursion(struct builder *b, int next)
{
	struct draft *d;

	plain(b);
	d = cond(b, next);
	d->guard = true;
	plain(b);
	direct_call(b, SIM_RECURSIVE);
}

/* The host's way into a guest and back: vmptrld, vmresume, the failure path, the exit path. */
static void run_guest(struct builder *b)
{
	begin_item(b);
	cond(b, 1);
	draft(b, SIM_VMPTRLD, "\x0f\xc7\x37", 3);
	begin_item(b);
	some_plain(b, 2);
	draft(b, SIM_VMRESUME, below(b, 2) ? "\x0f\x01\xc3" : "\x0f\x01\xc2", 3);
	short_branch(b, SIM_JMP, 0xeb, 3);
	begin_item(b);
	b->code->vmexit = b->code->insns.count + b->drafts.count;
	stuff_returns(b);
	some_plain(b, 3);
	call_something(b);
	begin_item(b);
	plain(b);
	draft(b, SIM_RET, "\xc3", 1);
}

static void end_function(struct builder *b)
{
	bool is64 = b->options->bits == 64;

	begin_item(b);
	if (b->function == SIM_HANDLER)
		draft(b, SIM_IRET, is64 ? "\x48\xcf" : "\xcf", is64 ? 2 : 1);
	else if (is64 &&
		 (b->function == SIM_ENTRY || (b->function == SIM_MAIN && b->options->has_user)))
		draft(b, SIM_SYSRET, "\x48\x0f\x07", 3);
	else if (b->function == SIM_MAIN)
		short_branch(b, SIM_JMP, 0xeb, 0);
	else if (below(b, 3) == 0)
		draft(b, SIM_RET, "\xc2\x08\0", 3);
	else
		draft(b, SIM_RET, "\xc3", 1);
}

/* Main begins with a conditional branch, so that its loop cannot go round without a packet. */
static void fill_function(struct builder *b)
{
	int items = 4 + (int)below(b, 8);

	if (b->function == SIM_RUN && b->options->runs_guests) {
		run_guest(b);
		return;
	}
	for (int item = 0; item < items; item++) {
		begin_item(b);
		if (b->function == SIM_RECURSIVE && item == 1)
			recursion(b, item + 1);
		else if (b->function == SIM_MAIN && item == 0)
			cond(b, 1);
		else if (b->options->runs_guests &&
			 (b->function == SIM_MAIN || b->function == SIM_ENTRY) && item % 2 == 1)
			direct_call(b, SIM_RUN);
		else
			any_item(b, item, items);
	}
	end_function(b);
}

/* Addresses of the drafts from `base`; true when a short branch did not reach and was widened. */
static bool lay_out(struct builder *b, int64_t *addresses)
{
	bool widened = false;
	int64_t address = 0;

	for (size_t i = 0; i < b->drafts.count; address += b->drafts.items[i++].size)
		addresses[i] = address;
	for (size_t i = 0; i < b->drafts.count; i++) {
		struct draft *d = &b->drafts.items[i];
		int64_t distance;

		if (d->field != 1)
			continue;
		distance = addresses[b->starts.items[d->item]] - addresses[i] - d->size;
		if (distance < -128 || distance > 127) {
			widen(b, d);
			widened = true;
		}
	}
	return widened;
}

static void append_insn(struct builder *b, const struct draft *d, uint64_t ip, bool leader)
{
	struct sim_insn insn = { .ip = ip,
				 .kind = d->kind,
				 .size = d->size,
				 .leader = leader,
				 .guard = d->guard,
				 .jumps = d->kind == SIM_LABEL && !d->is_nop };
	struct draft kept = *d;

	if (d->item >= 0)
		insn.index = b->code->functions[b->function] + b->starts.items[d->item];
	/* a call over nothing, or over a byte never run */
	if (d->kind == SIM_CALL && d->item < 0 && d->function < 0)
		insn.index = b->code->insns.count + (d->field ? 1 : 2);
	if (!vec_push(&b->code->insns, insn) || !vec_push(&b->done, kept))
		abort();
}

static void finish_function(struct builder *b, uint64_t ip)
{
	int64_t *addresses = calloc(b->drafts.count, sizeof(*addresses));
	size_t item = 0;

	if (!addresses)
		abort();
	while (lay_out(b, addresses))
		;
	for (size_t i = 0; i < b->drafts.count; i++) {
		bool leader = item < b->starts.count && b->starts.items[item] == i;

		while (item < b->starts.count && b->starts.items[item] == i)
			item++;
		append_insn(b, &b->drafts.items[i], ip + (uint64_t)addresses[i], leader);
	}
	free(addresses);
	b->drafts.count = b->starts.count = 0;
}

/* Functions are aligned; the last leaves lie far off, where an address filter can leave them out.
 */
static uint64_t function_address(const struct sim_code *code, unsigned function)
{
	uint64_t end = code->base;

	if (code->insns.count) {
		const struct sim_insn *last = &code->insns.items[code->insns.count - 1];

		end = last->ip + last->size;
	}
	if (function == SIM_FIRST_LEAF + SIM_NEAR_LEAVES)
		return code->base + SIM_FAR_OFFSET;
	return (end + 15) & ~(uint64_t)15;
}

/* Direct targets are known now that every function has its place. */
static void write_bytes(struct builder *b)
{
	struct sim_code *code = b->code;
	const struct sim_insn *last = &code->insns.items[code->insns.count - 1];

	code->size = (size_t)(last->ip + last->size - code->base);
	code->bytes = malloc(code->size);
	if (!code->bytes)
		abort();
	memset(code->bytes, 0xcc, code->size);
	for (size_t i = 0; i < code->insns.count; i++) {
		struct sim_insn *insn = &code->insns.items[i];
		struct draft *d = &b->done.items[i];
		uint64_t displacement;

		if (d->function >= 0)
			insn->index = code->functions[d->function];
		insn->target = code->insns.items[insn->index].ip;
		displacement = insn->target - insn->ip - insn->size;
		memcpy(d->bytes + d->size - d->field, &displacement, d->field);
		if (d->is_nop)
			memcpy(d->bytes, d->size == 2 ? "\x66\x90" : "\x0f\x1f\x44\0\0", d->size);
		memcpy(code->bytes + (insn->ip - code->base), d->bytes, d->size);
	}
}

void sim_code_make(const struct sim_code_options *options, struct sim_code *ret)
{
	struct builder b = { .options = options, .code = ret, .random = { options->seed } };

	*ret = (struct sim_code){ .base = options->base, .bits = options->bits };
	for (b.function = 0; b.function < SIM_FUNCTIONS; b.function++) {
		uint64_t address = function_address(ret, b.function);

		ret->functions[b.function] = ret->insns.count;
		fill_function(&b);
		finish_function(&b, address);
	}
	ret->functions[SIM_FUNCTIONS] = ret->insns.count;
	write_bytes(&b);
	vec_free(&b.drafts);
	vec_free(&b.starts);
	vec_free(&b.done);
}

unsigned sim_code_function(const struct sim_code *code, size_t insn)
{
	unsigned function = 0;

	while (code->functions[function + 1] <= insn)
		function++;
	return function;
}

void sim_code_free(struct sim_code *code)
{
	free(code->bytes);
	vec_free(&code->insns);
}
