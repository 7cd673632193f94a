/* The image of a guest's kernel, as it is mapped while it runs: text, read-only data, data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/base/error.h"

struct page_walk;

enum { KERNEL_IMAGE_BYTES = 256 << 20 /* more is refused */ };

/* Where Linux maps its image, and after it modules (Documentation/arch/x86/x86_64/mm.rst). An image
 * that is placed by chance (KASLR) ends anywhere before the limit, where then modules begin
 * (KERNEL_IMAGE_SIZE, MODULES_VADDR). */
static const uint64_t kernel_image_first = 0xffffffff80000000;
static const uint64_t kernel_image_limit = 0xffffffffc0000000;
static const uint64_t kernel_image_last = 0xffffffffff000000; /* and no module is after it */

struct kernel_image {
	uint64_t address;
	struct bytes bytes; /* zeroes where nothing is mapped */
	uint8_t *data;      /* what `bytes` shows */
};

/**
 * Read it.
 *
 * @ret  release with kernel_image_free(), also after a failure
 *
 * Returns 0, -PTVM_NOT_FOUND (these page tables map no kernel), -PTVM_BAD_INPUT (too large),
 * -PTVM_NO_MEMORY, or an error of the memory.
 */
int kernel_image_read(struct page_walk *walk, struct kernel_image *ret, struct ptvm_error *error);

/**
 * How many bytes the page tables map where the kernel and its modules are. Those of a process are
 * few while the kernel is hidden from it (page table isolation).
 * Returns 0 or an error of the memory.
 */
int kernel_image_measure(struct page_walk *walk, uint64_t *ret, struct ptvm_error *error);

/** Free everything; accepts zeroes. */
void kernel_image_free(struct kernel_image *image);
