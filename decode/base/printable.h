/* Names that others gave, on their way to a terminal, which obeys control characters: U+0000 to
 * U+001f and U+007f to U+009f. Names are UTF-8, or any bytes. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/** Put a question mark in the place of each such byte. */
void printable(char *text, size_t size);

/** Write `size` bytes of a name so. */
void printable_write(const char *name, size_t size, FILE *out);

/** Write a name so. */
void printable_puts(const char *name, FILE *out);
