#include "host/vm/ram_layout.h"

#include "host/vm/ram_mappings.h"

static const uint64_t high_start = UINT64_C(4) << 30;
/* Above are at least the APIC and the firmware. */
static const uint64_t low_most = 0xf0000000;
/* What firmware takes from the end of low RAM, at most. */
static const uint64_t spare_most = 256 << 20;

/* Where RAM ends below 4 GiB, if it is in one piece with the rest: QEMU q35 (2 and 2.75 GiB), pc
 * and microvm (3 and 3.5 GiB), cloud-hypervisor and Firecracker (3 GiB), before 1.12 and crosvm
 * (3.25 GiB). */
static const uint64_t low_ends[] = {
	0x80000000, 0xb0000000, 0xc0000000, 0xd0000000, 0xe0000000,
};

enum { LOW_ENDS = sizeof(low_ends) / sizeof(low_ends[0]), SPLITS = 1 + 2 * LOW_ENDS };

static uint64_t size_of(const struct ram_extent *extent)
{
	return extent->to - extent->from;
}

static bool in_one_piece(const struct ram_extent *extent, struct ram_layout *ret)
{
	*ret = (struct ram_layout){ { { 0, extent->from, size_of(extent) } }, 1 };
	return size_of(extent) <= low_most;
}

/* One extent has both parts. Where two mappings became one, the high part may come first: it was
 * mapped later, and the kernel hands out addresses from the top down. */
static bool split(const struct ram_extent *extent, uint64_t low_end, bool is_high_first,
		  struct ram_layout *ret)
{
	const uint64_t from = extent->from, size = size_of(extent), high = size - low_end;

	*ret = (struct ram_layout){ { { 0, is_high_first ? from + high : from, low_end },
				      { high_start, is_high_first ? from : from + low_end, high } },
				    2 };
	return size > low_end;
}

static bool in_two_pieces(const struct ram_extent *low, const struct ram_extent *high,
			  struct ram_layout *ret)
{
	*ret = (struct ram_layout){
		{ { 0, low->from, size_of(low) }, { high_start, high->from, size_of(high) } }, 2
	};
	return low != high && size_of(low) <= low_most;
}

static bool guess_one(const struct ram_mappings *mappings, const struct ram_guess *guess,
		      struct ram_layout *ret)
{
	const struct ram_extent *low = &mappings->extents[guess->low];

	if (!guess->kind)
		return in_one_piece(low, ret);
	if (guess->kind < SPLITS)
		return split(low, low_ends[(guess->kind - 1) / 2], guess->kind % 2 == 0, ret);
	return in_two_pieces(low, &mappings->extents[guess->kind - SPLITS], ret);
}

bool ram_layout_next(const struct ram_mappings *mappings, struct ram_guess *guess,
		     struct ram_layout *ret)
{
	bool is_one = false;

	while (guess->low < mappings->extent_count && !is_one) {
		is_one = guess_one(mappings, guess, ret);
		if (++guess->kind < SPLITS + mappings->extent_count)
			continue;
		guess->kind = 0;
		guess->low++;
	}
	return is_one;
}

static bool piece_fits(const struct ram_layout *layout, size_t index, uint64_t guest_end,
		       uint64_t *spare)
{
	const struct ram_piece *piece = &layout->pieces[index];
	uint64_t end = index < layout->count ? piece->guest + piece->size : 0;

	if (end < guest_end || (end && !guest_end) || end - guest_end > spare_most)
		return false;
	*spare += end - guest_end;
	return true;
}

bool ram_layout_fits(const struct ram_layout *layout, const struct direct_map *map,
		     uint64_t *ret_spare)
{
	*ret_spare = 0;
	return piece_fits(layout, 0, map->low_end, ret_spare) &&
	       piece_fits(layout, 1, map->high_end, ret_spare);
}
