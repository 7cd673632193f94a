/* Where the RAM of a guest is in the process that runs it. RAM of a PC begins at 0, leaves a hole
 * for devices below 4 GiB, and goes on at 4 GiB; programs that run guests map it in one piece or in
 * two, and have their own opinion of how large the hole is. So layouts are guessed, and one is
 * believed that the guest's page tables agree with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/direct_map.h"

struct ram_mappings;

struct ram_piece {
	uint64_t guest, address, size; /* guest-physical, in the process */
};

struct ram_layout {
	struct ram_piece pieces[2];
	size_t count;
};

/** Where to go on with the guesses; zero-initialise before the first. */
struct ram_guess {
	size_t low, kind;
};

/** The next guess. False after the last one. */
bool ram_layout_next(const struct ram_mappings *mappings, struct ram_guess *guess,
		     struct ram_layout *ret);

/**
 * Does it have the RAM that the guest knows of, and little more?
 *
 * @ret_spare  bytes that the guest does not know of
 */
bool ram_layout_fits(const struct ram_layout *layout, const struct direct_map *map,
		     uint64_t *ret_spare);
