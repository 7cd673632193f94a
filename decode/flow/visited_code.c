#include "decode/flow/visited_code.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/flow/replaced_module.h"

/* Votes that are kept. */
enum {
	VOTES_MAX = 1 << 14,  /* of one, */
	VOTES_LEAST = 1 << 6, /* or if there are many each has so many, at least; */
	VOTES_ALL = 1 << 20,  /* of all, about */
};

static int compare(const struct visited_code *a, const struct visited_code *b)
{
	const struct replaced_module left = { a->machine, a->module, 0 };
	const struct replaced_module right = { b->machine, b->module, 0 };

	return a->later ? sort_order(a->later, b->later) : replaced_module_compare(&left, &right);
}

/* Where it is or belongs in `sorted`. */
static size_t slot_of(const struct visited_codes *codes, const struct visited_code *key)
{
	return search_sorted(codes->count, i, compare(codes->sorted[i], key) < 0);
}

struct visited_code *visited_codes_find(const struct visited_codes *codes,
					const struct visited_code *key)
{
	size_t slot = slot_of(codes, key);

	return slot < codes->count && !compare(codes->sorted[slot], key) ? codes->sorted[slot]
									 : NULL;
}

struct visited_code *visited_codes_get(struct visited_codes *codes, const struct visited_code *key)
{
	struct visited_code *code = visited_codes_find(codes, key);
	size_t slot = slot_of(codes, key);

	if (code)
		return code;
	code = calloc(1, sizeof(*code));
	if (!code ||
	    !vec_grow((void **)&codes->sorted, &codes->sorted_room, codes->count, sizeof(code)) ||
	    !vec_push(codes, code)) {
		free(code);
		return NULL;
	}
	*code = *key;
	memmove(codes->sorted + slot + 1, codes->sorted + slot,
		(codes->count - 1 - slot) * sizeof(code));
	return codes->sorted[slot] = code;
}

bool visited_codes_vote(const struct visited_codes *codes, struct visited_code *code,
			uint64_t time_ns, bool is_earlier)
{
	size_t share = VOTES_ALL / codes->count;
	size_t most = share > VOTES_MAX ? VOTES_MAX : share < VOTES_LEAST ? VOTES_LEAST : share;

	return code_votes_add(&code->votes, time_ns, is_earlier, most);
}

void visited_codes_free(struct visited_codes *codes)
{
	for (size_t i = 0; i < codes->count; i++) {
		code_votes_free(&codes->items[i]->votes);
		free(codes->items[i]);
	}
	vec_free(codes);
	free(codes->sorted);
	codes->sorted = NULL;
	codes->sorted_room = 0;
}
