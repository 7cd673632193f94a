/* What QEMU's monitor prints for people to read: vCPUs' registers, where the guest's memory is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_root;

/** Memory of the guest, by guest-physical addresses; end inclusive. */
struct monitor_range {
	uint64_t first, last;
};

/**
 * The page tables of all vCPUs in 64-bit mode, from "info registers -a".
 * Returns how many there are, at most `room`.
 */
size_t monitor_text_roots(const char *text, struct page_root *ret, size_t room);

/**
 * The pieces of RAM that CPUs see, from "info mtree -f"; not ROM, nor devices.
 * Returns how many there are, at most `room`.
 */
size_t monitor_text_ram(const char *text, struct monitor_range *ret, size_t room);

/** The address in QEMU's process, from "gpa2hva"; 0 where it says that there is none. */
uint64_t monitor_text_address(const char *text);
