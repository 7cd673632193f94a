/* Names from a recording or a guest, made safe to print: a terminal obeys the control characters in
 * them, U+0000 to U+001f and U+007f to U+009f. Names are UTF-8, or any bytes. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/** Replace each byte of a control character by a question mark. */
void printable(char *text, size_t size);

/** Write `size` bytes of a name with question marks in their places. */
void printable_write(const char *name, size_t size, FILE *out);

/** The same for a name that ends with a NUL. */
void printable_puts(const char *name, FILE *out);
