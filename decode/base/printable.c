#include "decode/base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Is the byte a control character, or the first byte of one, U+0080 to U+009f? */
static bool is_control(const char *text, size_t left)
{
	unsigned char byte = (unsigned char)text[0];

	return byte < ' ' || byte == 0x7f ||
	       (byte == 0xc2 && left > 1 && (unsigned char)text[1] < 0xa0 && text[1] < 0);
}

/* Are eight bytes all from 0x20 to 0x7e? Then none of them has its highest bit set, nor does it
 * get it when 0x20 is subtracted or 1 is added. The sums are of all eight at once: a byte that
 * borrows from its neighbour or carries into it ends up with that bit set, and so fails the test
 * whatever it does to the neighbour. */
static bool are_plain(const char *text)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t bytes;

	memcpy(&bytes, text, sizeof(bytes));
	return !((bytes | (bytes - 0x20 * ones) | (bytes + ones)) & 0x80 * ones);
}

/* How many bytes at the start are certainly not part of a control character. */
static size_t plain_length(const char *text, size_t size)
{
	size_t length = 0;

	while (size - length >= 8 && are_plain(text + length))
		length += 8;
	if (size >= 8 && size - length < 8 && are_plain(text + size - 8))
		return size;
	return length;
}

void printable(char *text, size_t size)
{
	for (size_t i = plain_length(text, size); i < size; i++) {
		if (!is_control(text + i, size - i))
			continue;
		if (text[i] < 0)
			text[i + 1] = '?';
		text[i] = '?';
	}
}

void printable_write(const char *name, size_t size, FILE *out)
{
	for (size_t i = 0; i < size; i++) {
		bool control = is_control(name + i, size - i);

		(void)fputc(control ? '?' : name[i], out);
		if (control && name[i] < 0) {
			(void)fputc('?', out);
			i++;
		}
	}
}

void printable_puts(const char *name, FILE *out)
{
	printable_write(name, strlen(name), out);
}
