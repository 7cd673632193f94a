/* Names are compressed: 256 tokens, each a string (token_table, found by token_index), and for each
 * symbol a length and as many tokens, of which the first begins with the symbol's type. Every 256th
 * symbol has a marker: where its name is. The tables follow each other, each aligned to 8 bytes,
 * since 7.0 to 4 (scripts/kallsyms.c of Linux):
 *
 *   to 6.1    values, base, count, names, markers, token_table, token_index
 *   6.2, 6.3  the same, with 3 bytes for each symbol after the markers
 *   from 6.4  count, names, markers, token_table, token_index, values, base
 *   from 7.0  the same, but values are relative to their places, and there is no base
 *
 * The index of tokens has a shape that nothing else has. What is before it is searched for a count
 * whose names and markers end where they must. */
#include "guest/kallsyms_tables.h"

#include <ctype.h>
#include <string.h>

enum {
	LEAST_ALIGN = 4,
	MOST_ALIGN = 8,
	TOKENS = 256,
	TOKEN_BYTES = 128,        /* of a string in the table, with its NUL, at most */
	INDEX_BYTES = TOKENS * 2, /* of token_index */
	MARKED = 256,             /* symbols for each marker */
	FEWEST = 1000,            /* symbols that a kernel has */
	NAME_BYTES = 2 + (1 << 14),
	TRIES = 8,                                /* indexes of tokens that are believed */
	MOST_NAMES = 8 * KALLSYMS_TABLES_SYMBOLS, /* that all tries may look at */
};

static uint64_t align(uint64_t size, unsigned to)
{
	return (size + to - 1) & ~(uint64_t)(to - 1);
}

/* Does what ends at `end` reach the table at `next`, but for padding? */
static bool reaches(uint64_t end, uint64_t next)
{
	return next - end < MOST_ALIGN;
}

/* 256 rising offsets of strings that have a byte or more each. */
static bool is_token_index(struct bytes image, uint64_t at)
{
	struct bytes index = bytes_slice(image, at, INDEX_BYTES);
	unsigned last = 0, next;

	if (index.size < INDEX_BYTES || load_le(index.data, 2))
		return false;
	for (unsigned i = 1; i < TOKENS; i++, last = next) {
		next = (unsigned)load_le(index.data + 2 * i, 2);
		if (next < last + 2 || next > last + TOKEN_BYTES)
			return false;
	}
	return true;
}

/* The length of a string of printable bytes, with its NUL; 0 where there is none. */
static size_t string_size(struct bytes image, uint64_t at)
{
	struct bytes text = bytes_slice(image, at, TOKEN_BYTES);
	size_t size = 0;

	while (size < text.size && isgraph(text.data[size]))
		size++;
	return size && size < text.size && !text.data[size] ? size + 1 : 0;
}

/* Do the strings at `at` begin where the index says, and end just before it? */
static bool is_token_table(struct bytes image, uint64_t at, uint64_t index)
{
	uint64_t offset = 0;
	size_t size;

	for (unsigned i = 0; i < TOKENS; i++, offset += size) {
		size = string_size(image, at + offset);
		if (!size || bytes_number(image, index + 2 * i, 2) != offset)
			return false;
	}
	return reaches(at + offset, index);
}

static bool find_tokens(struct kallsyms_tables *tables, uint64_t index)
{
	uint64_t last = bytes_number(tables->image, index + INDEX_BYTES - 2, 2);

	for (uint64_t size = align(last + 1, LEAST_ALIGN);
	     size <= align(last + TOKEN_BYTES, MOST_ALIGN); size += LEAST_ALIGN) {
		if (size > index || !is_token_table(tables->image, index - size, index))
			continue;
		tables->token_index = index;
		tables->token_table = index - size;
		return true;
	}
	return false;
}

/* How many tokens the name at `at` has, and with `ret_at` where they are; 0 where there is none.
 * Since 6.1 lengths above 127 take two bytes. */
static size_t name_length(struct bytes image, uint64_t at, uint64_t *ret_at)
{
	size_t length = bytes_number(image, at, 1);

	*ret_at = at + 1;
	if (length & 0x80)
		length = (length & 0x7f) | bytes_number(image, (*ret_at)++, 1) << 7;
	return length && length < image.size && *ret_at <= image.size - length ? length : 0;
}

/* Walk `count` names. Returns where the one after them is, or 0. */
static uint64_t skip_names(struct bytes image, uint64_t at, uint32_t count)
{
	size_t length;

	while (count--) {
		length = name_length(image, at, &at);
		if (!length)
			return 0;
		at += length;
	}
	return at;
}

static uint32_t marker(const struct kallsyms_tables *tables, uint32_t i)
{
	return (uint32_t)bytes_number(tables->image, tables->markers + 4 * (uint64_t)i, 4);
}

/* Are there as many names as markers say, the last of them just before the markers? Cheap: most
 * wrong counts fail the first comparison. */
static bool ends_at_markers(const struct kallsyms_tables *tables, uint32_t *names_left)
{
	uint32_t last = (tables->count - 1) / MARKED;
	uint64_t block = tables->names + marker(tables, last);

	if (tables->markers <= tables->names || tables->markers > tables->token_table ||
	    marker(tables, 0) || block >= tables->markers ||
	    tables->markers - block > MARKED * NAME_BYTES || *names_left < MARKED)
		return false;
	*names_left -= MARKED;
	return reaches(skip_names(tables->image, block, tables->count - last * MARKED),
		       tables->markers);
}

static bool has_all_names(const struct kallsyms_tables *tables, uint32_t *names_left)
{
	uint64_t at = tables->names;
	uint32_t done, part;

	if (*names_left < tables->count)
		return false;
	*names_left -= tables->count;
	for (done = 0; done < tables->count; done += part) {
		part = tables->count - done < MARKED ? tables->count - done : MARKED;
		if (at != tables->names + marker(tables, done / MARKED))
			return false;
		at = skip_names(tables->image, at, part);
	}
	return reaches(at, tables->markers);
}

/* Is the count of symbols at `at`, followed by their names? `order_bytes` for each symbol are after
 * the markers. */
static bool is_count(struct kallsyms_tables *tables, uint64_t at, unsigned aligned,
		     unsigned order_bytes, uint32_t *names_left)
{
	uint64_t count = bytes_number(tables->image, at, aligned);
	uint64_t markers = align((count + MARKED - 1) / MARKED * 4, aligned);

	if (at % aligned || count < FEWEST || count > KALLSYMS_TABLES_SYMBOLS)
		return false;
	tables->count = (uint32_t)count;
	tables->count_at = at;
	tables->names = at + aligned;
	tables->markers = tables->token_table - markers - align(order_bytes * count, aligned);
	return ends_at_markers(tables, names_left) && has_all_names(tables, names_left);
}

static bool find_names(struct kallsyms_tables *tables, uint32_t *names_left)
{
	uint64_t at = tables->token_table & ~(uint64_t)(LEAST_ALIGN - 1);

	for (; at >= LEAST_ALIGN; at -= LEAST_ALIGN)
		if (is_count(tables, at - LEAST_ALIGN, MOST_ALIGN, 0, names_left) ||
		    is_count(tables, at - LEAST_ALIGN, MOST_ALIGN, 3, names_left) ||
		    is_count(tables, at - LEAST_ALIGN, LEAST_ALIGN, 0, names_left))
			return true;
	return false;
}

static uint64_t address_of(const struct kallsyms_tables *tables, uint32_t index)
{
	unsigned size = tables->kind == KALLSYMS_ADDRESSES ? 8 : 4;
	uint64_t value = bytes_number(tables->image, tables->values + (uint64_t)index * size, size);

	if (tables->kind == KALLSYMS_OFFSETS)
		return tables->base + value;
	if (tables->kind == KALLSYMS_PLACES)
		return tables->base + 4 * (uint64_t)index + (uint64_t)(int32_t)value;
	if (tables->kind == KALLSYMS_PER_CPU && (int32_t)value < 0)
		return tables->base - 1 - (uint64_t)(int32_t)value;
	return value;
}

/* Addresses rise, and most of them are in the image, but not where they are told: zeroes, as
 * distances from their places, would be. */
static bool are_addresses(const struct kallsyms_tables *tables, uint64_t address)
{
	uint32_t inside = 0;
	uint64_t last = 0, next;

	for (uint32_t i = 0; i < tables->count; i++, last = next) {
		next = address_of(tables, i);
		if (next < last)
			return false;
		inside += next - address <= tables->image.size &&
			  next - address - tables->values >= 4 * (uint64_t)tables->count;
	}
	return inside > tables->count / 2;
}

/* Values of one kind, which begin `size` bytes before `end`. */
static bool try_values(struct kallsyms_tables *tables, uint64_t values, enum kallsyms_values kind,
		       uint64_t address)
{
	tables->values = values;
	tables->kind = kind;
	return values < tables->image.size && are_addresses(tables, address);
}

static bool try_offsets(struct kallsyms_tables *tables, uint64_t values, uint64_t base,
			uint64_t address)
{
	tables->base = bytes_number(tables->image, base, 8);
	return try_values(tables, values, KALLSYMS_PER_CPU, address) ||
	       try_values(tables, values, KALLSYMS_OFFSETS, address);
}

static bool try_places(struct kallsyms_tables *tables, uint64_t values, uint64_t address)
{
	tables->base = address + values;
	return try_values(tables, values, KALLSYMS_PLACES, address);
}

static bool find_values(struct kallsyms_tables *tables, uint64_t address)
{
	uint64_t before = tables->count_at, after = tables->token_index + INDEX_BYTES;
	uint64_t size = align(4 * (uint64_t)tables->count, MOST_ALIGN);

	return try_offsets(tables, before - 8 - size, before - 8, address) ||
	       try_offsets(tables, after, after + size, address) ||
	       try_places(tables, after, address) ||
	       try_values(tables, before - 8 * (uint64_t)tables->count, KALLSYMS_ADDRESSES,
			  address);
}

int kallsyms_tables_find(struct bytes image, uint64_t address, struct kallsyms_tables *ret,
			 struct ptvm_error *error)
{
	uint32_t names_left = MOST_NAMES;
	unsigned tries = 0;

	*ret = (struct kallsyms_tables){ .image = image };
	for (uint64_t at = 0; at + INDEX_BYTES <= image.size && tries < TRIES; at += LEAST_ALIGN) {
		if (!is_token_index(image, at) || !find_tokens(ret, at))
			continue;
		if (find_names(ret, &names_left) && find_values(ret, address))
			return 0;
		tries++;
	}
	return ptvm_fail(error, PTVM_NOT_FOUND,
			 "no tables of symbols in the kernel at %#llx (CONFIG_KALLSYMS)",
			 (unsigned long long)address);
}

/* Write the text of one token; returns its length. */
static size_t expand(const struct kallsyms_tables *tables, uint8_t token, char *to, size_t room)
{
	uint64_t at = bytes_number(tables->image, tables->token_index + 2 * (uint64_t)token, 2);
	size_t size = string_size(tables->image, tables->token_table + at);

	if (!size)
		return 0;
	size = size - 1 < room ? size - 1 : room;
	memcpy(to, tables->image.data + tables->token_table + at, size);
	return size;
}

bool kallsyms_tables_next(const struct kallsyms_tables *tables, struct kallsyms_place *place,
			  struct kallsyms_symbol *ret)
{
	char text[1 + KALLSYMS_NAME_BYTES] = { 0 };
	size_t used = 0, length;
	uint64_t at;

	if (place->index == tables->count)
		return false;
	length = name_length(tables->image, tables->names + place->name, &at);
	for (size_t i = 0; i < length && used < KALLSYMS_NAME_BYTES; i++)
		used += expand(tables, tables->image.data[at + i], text + used,
			       KALLSYMS_NAME_BYTES - used);
	ret->address = address_of(tables, place->index);
	ret->type = text[0];
	memcpy(ret->name, text + 1, sizeof(ret->name));
	place->name = at + length - tables->names;
	place->index++;
	return true;
}

uint64_t kallsyms_tables_address(const struct kallsyms_tables *tables, const char *name)
{
	struct kallsyms_place place = { 0 };
	struct kallsyms_symbol symbol;

	while (kallsyms_tables_next(tables, &place, &symbol))
		if (!strcmp(symbol.name, name))
			return symbol.address;
	return 0;
}
