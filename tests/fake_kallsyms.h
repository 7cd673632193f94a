/* Tables of symbols as a kernel carries them, made as scripts/kallsyms.c of Linux does. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/text.h"
#include "guest/kallsyms_tables.h"

struct fake_symbol {
	uint64_t address;
	char type;
	char name[KALLSYMS_NAME_BYTES];
};

struct fake_kallsyms {
	enum fake_layout { FAKE_TO_6_1, FAKE_6_2, FAKE_FROM_6_4, FAKE_FROM_7_0 } layout;
	enum kallsyms_values kind;
	uint64_t base; /* with KALLSYMS_PLACES where the image is, which the text has from its begin
			*/
	const struct fake_symbol *symbols; /* sorted by address */
	size_t count;
};

/** Append the tables, aligned as in that kernel. */
void fake_kallsyms_put(const struct fake_kallsyms *tables, struct text *image);

/** Make `count` symbols: two absolute ones, then code of 16 bytes each from `base` on. */
struct fake_symbol *fake_kallsyms_symbols(uint64_t base, size_t count);
