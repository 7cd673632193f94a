/* A growing buffer of text, and numbers written by hand: printing is the hot path of script. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/printable.h"

/** Zero-initialise before use; release with text_free(). */
struct text {
	char *data;
	size_t size, room;
	bool failed; /* memory ran out; what did not fit is missing */
};

static inline void text_free(struct text *text)
{
	free(text->data);
	*text = (struct text){ 0 };
}

/** Get more room than there is; see text_reserve(). */
__attribute__((noinline, unused)) static bool text_grow(struct text *text, size_t more)
{
	size_t want = text->room ? text->room : 512;
	char *grown;

	while (want - text->size < more)
		want *= 2;
	grown = realloc(text->data, want);
	if (!grown) {
		text->failed = true;
		return false;
	}
	text->data = grown;
	text->room = want;
	return true;
}

/** Make room for `more` bytes; false when memory is out. */
static inline bool text_reserve(struct text *text, size_t more)
{
	return text->room - text->size >= more || text_grow(text, more);
}

static inline void text_add(struct text *text, const char *data, size_t size)
{
	if (!size || !text_reserve(text, size))
		return;
	memcpy(text->data + text->size, data, size);
	text->size += size;
}

static inline void text_puts(struct text *text, const char *string)
{
	text_add(text, string, strlen(string));
}

static inline void text_putc(struct text *text, char c)
{
	if (text_reserve(text, 1))
		text->data[text->size++] = c;
}

/** Append `count` times the same character. */
static inline void text_fill(struct text *text, char c, size_t count)
{
	if (!count || !text_reserve(text, count))
		return;
	memset(text->data + text->size, c, count);
	text->size += count;
}

/** Make safe to print what was added since the text had `from` bytes (printable.h). */
static inline void text_printable(struct text *text, size_t from)
{
	if (text->size > from)
		printable(text->data + from, text->size - from);
}

/** Append a name that is not ptvm's own, made safe to print. */
static inline void text_name(struct text *text, const char *name)
{
	size_t from = text->size;

	text_puts(text, name);
	text_printable(text, from);
}

/** Append `string`, right-aligned in `width` columns. */
static inline void text_right(struct text *text, const char *string, size_t width)
{
	size_t length = strlen(string);

	if (length < width)
		text_fill(text, ' ', width - length);
	text_add(text, string, length);
}

/** Append `string`, left-aligned in `width` columns. */
static inline void text_left(struct text *text, const char *string, size_t width)
{
	size_t length = strlen(string);

	text_add(text, string, length);
	if (length < width)
		text_fill(text, ' ', width - length);
}

/** Append `fill` as often as it takes to have `width` columns with `count` characters behind it.
 * Returns where these are to be written; NULL when memory is out. */
static inline char *text_field(struct text *text, unsigned count, unsigned width, char fill)
{
	char *p;

	if (!text_reserve(text, count + width))
		return NULL;
	p = text->data + text->size;
	for (; width > count; width--)
		*p++ = fill;
	text->size = (size_t)(p - text->data) + count;
	return p;
}

/** Append a number in hexadecimal without leading zeros, right-aligned in `width` columns. */
static inline void text_hex(struct text *text, uint64_t value, unsigned width)
{
	unsigned count = (67 - (unsigned)__builtin_clzll(value | 1)) / 4;
	char *p = text_field(text, count, width, ' ');

	for (; p && count--; value >>= 4)
		p[count] = "0123456789abcdef"[value & 15];
}

/** The eight hexadecimal digits of a number, as they lie in memory: all at once, each in a byte. */
static inline uint64_t text_hex_digits(uint32_t value)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t x = value, letters;

	x = (x | x << 16) & 0x0000ffff0000ffff;
	x = (x | x << 8) & 0x00ff00ff00ff00ff;
	x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
	letters = (x + 6 * ones) >> 4 & ones;
	return __builtin_bswap64(x + '0' * ones + letters * ('a' - '0' - 10));
}

/** Write the last `count` decimal digits: two at a time, since each step waits for the one before.
 */
static inline void text_digits(char *to, uint64_t value, unsigned count)
{
	for (; count > 1; value /= 100) {
		unsigned pair = (unsigned)(value % 100);

		count -= 2;
		to[count] = (char)('0' + pair / 10);
		to[count + 1] = (char)('0' + pair % 10);
	}
	if (count)
		to[0] = (char)('0' + value % 10);
}

/** Append a number in decimal, right-aligned in `width` columns that are filled up with `fill`. */
static inline void text_dec(struct text *text, uint64_t value, unsigned width, char fill)
{
	unsigned count = 1;
	char *p;

	for (uint64_t rest = value; rest >= 10; rest /= 10)
		count++;
	p = text_field(text, count, width, fill);
	if (p)
		text_digits(p, value, count);
}
