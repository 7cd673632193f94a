/* The symbols that a Linux kernel carries in its read-only data (CONFIG_KALLSYMS), found in an
 * image of its memory with nothing else known of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/base/error.h"

enum {
	KALLSYMS_TABLES_SYMBOLS = 4 << 20, /* more is not believed */
	KALLSYMS_NAME_BYTES = 512,         /* with the NUL, as the kernel's KSYM_NAME_LEN */
};

struct kallsyms_tables {
	struct bytes image;
	uint32_t count;
	/* offsets in the image */
	uint64_t count_at, names, markers, token_table, token_index, values;
	uint64_t base; /* what the values are relative to; KALLSYMS_PLACES: the first one's place */
	enum kallsyms_values {
		KALLSYMS_ADDRESSES, /* 8 bytes each */
		KALLSYMS_OFFSETS,   /* 4 bytes each, from the base */
		KALLSYMS_PER_CPU,   /* the same where negative, else absolute */
		KALLSYMS_PLACES,    /* 4 bytes each, signed, from the value's own place */
	} kind;
};

/** A place in the tables; zero-initialised it is before the first symbol. */
struct kallsyms_place {
	uint32_t index;
	uint64_t name; /* offset from the first name */
};

struct kallsyms_symbol {
	uint64_t address;
	char type; /* as /proc/kallsyms has it */
	char name[KALLSYMS_NAME_BYTES];
};

/**
 * Find the tables.
 *
 * @image    of the kernel; borrowed as long as `ret` is used
 * @address  where it is mapped
 *
 * Returns 0 or -PTVM_NOT_FOUND. Takes as long as reading the image once or twice.
 */
int kallsyms_tables_find(struct bytes image, uint64_t address, struct kallsyms_tables *ret,
			 struct ptvm_error *error);

/** The next symbol, in the order of /proc/kallsyms. False after the last one. */
bool kallsyms_tables_next(const struct kallsyms_tables *tables, struct kallsyms_place *place,
			  struct kallsyms_symbol *ret);

/** The address of the first symbol of this name, 0 if there is none. Linear. */
uint64_t kallsyms_tables_address(const struct kallsyms_tables *tables, const char *name);
