#include "decode/code/image.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/vec.h"

/* Ends are exclusive and may be 2^64, written 0: the last byte is what can be compared. */
static uint64_t last_of(const struct image_piece *piece)
{
	return piece->end - 1;
}

/* The first piece whose last byte is at or after `address`. */
static size_t lower_bound(const struct image *image, uint64_t address)
{
	return search_sorted(image->count, i, last_of(&image->items[i]) < address);
}

/* Put `count` pieces in the place of those in [from, to). */
static int splice(struct image *image, size_t from, size_t to, const struct image_piece *pieces,
		  size_t count)
{
	while (image->room < image->count + count)
		if (!vec_grow((void **)&image->items, &image->room, image->room,
			      sizeof(*image->items)))
			return -PTVM_NO_MEMORY;
	memmove(image->items + from + count, image->items + to,
		(image->count - to) * sizeof(*image->items));
	memcpy(image->items + from, pieces, count * sizeof(*pieces));
	image->count += count - (to - from);
	return 0;
}

int image_add(struct image *image, uint64_t start, const uint8_t *data, uint64_t size)
{
	struct image_piece pieces[3], added = { start, start + size, data };
	size_t from, to, count = 0;

	if (!size || last_of(&added) < start)
		return -PTVM_BAD_INPUT;
	from = to = lower_bound(image, start);
	while (to < image->count && image->items[to].start <= last_of(&added))
		to++;
	if (from < to && image->items[from].start < start) {
		pieces[count] = image->items[from];
		pieces[count++].end = start;
	}
	pieces[count++] = added;
	if (from < to && last_of(&image->items[to - 1]) > last_of(&added)) {
		pieces[count] = image->items[to - 1];
		pieces[count].data += added.end - pieces[count].start;
		pieces[count++].start = added.end;
	}
	return splice(image, from, to, pieces, count);
}

const struct image_piece *image_piece_at(const struct image *image, uint64_t address)
{
	size_t i = lower_bound(image, address);

	return i < image->count && image->items[i].start <= address ? &image->items[i] : NULL;
}

const uint8_t *image_find(const struct image *image, uint64_t address, size_t *left)
{
	const struct image_piece *piece = image_piece_at(image, address);

	if (!piece)
		return NULL;
	*left = piece->end - address;
	return piece->data + (address - piece->start);
}

void image_free(struct image *image)
{
	vec_free(image);
}
