/* A Linux kernel in a guest's memory: text, symbols, two modules, and VMCOREINFO. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/fake_memory.h"

#define FAKE_LINUX_START 0xffffffff96000000 /* _stext */
#define FAKE_LINUX_MODULES 0xffffffffc0000000
enum {
	FAKE_LINUX_TEXT_BYTES = 0x3e60, /* _etext - _stext; the page after it is executable too */
	FAKE_LINUX_SYMBOLS = 1200,
	FAKE_LINUX_LABELS = 0x8000,      /* from _stext to its table of jump labels */
	FAKE_LINUX_RAM_BYTES = 16 << 20, /* from 0 on, by what it says itself */
};

struct fake_linux {
	struct fake_memory memory;
	uint64_t user_root; /* page tables with one page of the kernel, next to memory.root */
	uint8_t *text;      /* in memory.data */
	uint8_t *boot_id;   /* there, too; 16 zeroes */
	uint8_t *clock;     /* there, too; its jiffies, 8 zeroes */
	char *vmcoreinfo;   /* there, too; VMCOREINFO */
};

/** Make the kernel and its page tables; asserts that it works. */
void fake_linux_init(struct fake_linux *guest, bool is_5_level);

/**
 * Make another kernel beside the first, which stays in memory: its own tables map it at the same
 * virtual addresses.
 */
void fake_linux_boot_again(struct fake_linux *guest);

/** Give it a table of jump labels, which are `size` bytes (less than a page) of its data. */
void fake_linux_put_labels(struct fake_linux *guest, const void *labels, size_t size);

/** The byte of text that it has at `address`. */
uint8_t fake_linux_byte(uint64_t address);

/** Free it. */
void fake_linux_deinit(struct fake_linux *guest);
