#include "decode/code/caller_table.h"

#include <stdbool.h>

#include "decode/base/bytes.h"
#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"

enum {
	CALL = 0xe8,
	JMP = 0xe9,
	BRANCH_SIZE = 5,
	ENDBR_SIZE = 4,        /* some call what is behind it */
	CALLERS_MAX = 1 << 20, /* a distribution's kernel has some 200000 with its modules */
	FUNCTIONS = 16,        /* that jump to a function, one after the other */
};

struct caller {
	uint64_t function; /* that is called, or jumped to */
	uint64_t place;    /* behind the call; for a jump, the function that it ends */
	bool is_jump;
};

SORT_BY_TWO(compare, struct caller, function, place)

/* Add what 5 bytes in a function are that may be a branch. Any bytes may look like one: what goes
 * to where no code is is none. False when memory is out. */
static bool add(const struct symbol *symbol, const struct image *image, uint64_t ip,
		const uint8_t *bytes, struct caller_table *ret)
{
	const uint64_t next = ip + BRANCH_SIZE;
	const bool is_jump = *bytes == JMP;
	struct caller caller = { .function = next + (uint64_t)(int32_t)load_le(bytes + 1, 4),
				 .place = is_jump ? symbol->start : next,
				 .is_jump = is_jump };

	if ((is_jump && caller.function - symbol->start < symbol->end - symbol->start) ||
	    !image_piece_at(image, caller.function))
		return true;
	return ret->count < CALLERS_MAX && vec_push(ret, caller);
}

/* Read a function up to where the next symbol begins, so that nothing is read twice. */
static bool read_function(const struct symbol *symbol, uint64_t end, const struct image *image,
			  struct caller_table *ret)
{
	const uint64_t start = symbol->start;
	size_t size = 0;
	const uint8_t *data = image_find(image, start, &size);

	if (symbol->end < end)
		end = symbol->end;
	if (!data || !(start >> 63) || end < start)
		return true;
	if (size > end - start)
		size = end - start;
	for (size_t i = 0; i + BRANCH_SIZE <= size; i++)
		if ((data[i] == CALL || data[i] == JMP) &&
		    !add(symbol, image, start + i, data + i, ret))
			return false;
	return true;
}

int caller_table_read(const struct symbols *symbols, const struct image *image,
		      struct caller_table *ret)
{
	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->items[i];
		uint64_t end = i + 1 < symbols->count ? symbol[1].start : UINT64_MAX;

		if (!read_function(symbol, end, image, ret))
			return -PTVM_NO_MEMORY;
	}
	sort_vec(ret, compare);
	return 0;
}

/* A function, and those that end with a jump to it. */
struct functions {
	uint64_t items[FUNCTIONS];
	unsigned count;
	bool is_cut;
};

static void add_function(struct functions *functions, uint64_t address)
{
	for (unsigned i = 0; i < functions->count; i++)
		if (functions->items[i] == address)
			return;
	functions->is_cut |= functions->count == FUNCTIONS;
	if (functions->count < FUNCTIONS)
		functions->items[functions->count++] = address;
}

unsigned caller_table_find(const struct caller_table *table, uint64_t function, uint64_t *ret,
			   unsigned room)
{
	struct functions functions = { { function }, 1, false };
	unsigned count = 0;

	for (unsigned k = 0; k < functions.count; k++) {
		const uint64_t callee = functions.items[k];
		size_t at = search_sorted(table->count, i, table->items[i].function < callee);

		for (; at < table->count && table->items[at].function - callee <= ENDBR_SIZE;
		     at++) {
			const struct caller *caller = &table->items[at];

			if (caller->is_jump)
				add_function(&functions, caller->place);
			else if (count == room)
				return room + 1;
			else
				ret[count++] = caller->place;
		}
	}
	return functions.is_cut ? room + 1 : count;
}

void caller_table_free(struct caller_table *table)
{
	vec_free(table);
}
