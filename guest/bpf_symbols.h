/* The symbols of BPF programs and trampolines that a guest's kernel has, as /proc/kallsyms shows
 * them. */
#pragma once

#include <stdint.h>

struct page_walk;
struct text;

enum {
	BPF_SYMBOLS = 1 << 16,           /* what is more is left out */
	BPF_SYMBOL_CODE_BYTES = 4 << 20, /* of one; what is longer is not believed */
};

/**
 * Append the lines of what is in the kernel's list, from the first one up to where it makes no
 * sense.
 *
 * @head   address of the list, the kernel's variable bpf_kallsyms (kernel/bpf/core.c)
 * @start  where the kernel's image ends: all such code is after it
 */
void bpf_symbols_print(struct page_walk *walk, uint64_t head, uint64_t start, struct text *text);
