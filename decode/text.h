/* A growing buffer of text, and numbers written by hand: printing is the hot path of script. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/** Make room for `more` bytes; false when memory is out. */
static inline bool text_reserve(struct text *text, size_t more)
{
	size_t want = text->room ? text->room : 4096;
	char *grown;

	if (text->room - text->size >= more)
		return true;
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

static inline void text_add(struct text *text, const char *data, size_t size)
{
	if (!text_reserve(text, size))
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
	text_add(text, &c, 1);
}

/** `string` right-aligned in `width` columns. */
static inline void text_right(struct text *text, const char *string, size_t width)
{
	size_t length = strlen(string);

	for (; length < width; width--)
		text_putc(text, ' ');
	text_add(text, string, length);
}

/** `string` left-aligned in `width` columns. */
static inline void text_left(struct text *text, const char *string, size_t width)
{
	size_t length = strlen(string);

	text_add(text, string, length);
	for (; length < width; width--)
		text_putc(text, ' ');
}

/** Hexadecimal without leading zeros, right-aligned in `width` columns. */
static inline void text_hex(struct text *text, uint64_t value, unsigned width)
{
	char digits[16];
	unsigned count = 0;

	do
		digits[15 - count++] = "0123456789abcdef"[value & 15];
	while (value >>= 4);
	for (; width > count; width--)
		text_putc(text, ' ');
	text_add(text, digits + 16 - count, count);
}

/** Decimal, right-aligned in `width` columns, filled up with `fill`. */
static inline void text_dec(struct text *text, uint64_t value, unsigned width, char fill)
{
	char digits[20];
	unsigned count = 0;

	do
		digits[19 - count++] = (char)('0' + value % 10);
	while (value /= 10);
	for (; width > count; width--)
		text_putc(text, fill);
	text_add(text, digits + 20 - count, count);
}
