#include "decode/code/text_poke.h"

#include "decode/base/vec.h"

int text_pokes_add(struct text_pokes *pokes, const struct perf_text_poke *poke, uint64_t time)
{
	uint64_t size = poke->old_size > poke->new_size ? poke->old_size : poke->new_size;

	if (!size || size > UINT64_MAX - poke->address)
		return 0;
	if (!vec_push(&pokes->list, *poke))
		return -PTVM_NO_MEMORY;
	return history_add(&pokes->history, poke->address, poke->address + size, time);
}

int text_pokes_finish(struct text_pokes *pokes, size_t *ret_dropped)
{
	return history_finish(&pokes->history, ret_dropped);
}

int text_pokes_find(const struct text_pokes *pokes, const struct image *image, uint64_t address,
		    uint64_t time, struct text_view *ret)
{
	struct history_view view = history_find(&pokes->history, address, time);
	const struct perf_text_poke *poke;
	size_t left;

	ret->from = view.from;
	ret->to = view.to;
	ret->data = NULL;
	ret->left = 0;
	if (view.item >= 0) {
		/* Text that was removed (no new bytes) is no code, whatever the copy has. */
		poke = &pokes->list.items[view.item];
		if (address - poke->address < poke->new_size) {
			ret->data = poke->new_bytes + (address - poke->address);
			ret->left = poke->new_size - (address - poke->address);
		}
	} else if (view.next >= 0 && address - pokes->list.items[view.next].address <
					     pokes->list.items[view.next].old_size) {
		poke = &pokes->list.items[view.next];
		ret->data = poke->old_bytes + (address - poke->address);
		ret->left = poke->old_size - (address - poke->address);
	} else {
		ret->data = image_find(image, address, &left);
		ret->left = ret->data ? left : 0;
	}
	if (!ret->data)
		return -PTVM_NO_CODE;
	if (view.end && ret->left > view.end - address)
		ret->left = view.end - address;
	return 0;
}

void text_pokes_free(struct text_pokes *pokes)
{
	vec_free(&pokes->list);
	history_free(&pokes->history);
}
