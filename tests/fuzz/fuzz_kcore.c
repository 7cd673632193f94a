#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "decode/code/elf_file.h"
#include "decode/code/elf_plt.h"
#include "decode/code/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte that the image promises must be there to read. */
static unsigned read_all(const struct image *image)
{
	unsigned sum = 0;

	for (size_t i = 0; i < image->count; i++) {
		size_t left;
		const uint8_t *p = image_find(image, image->items[i].start, &left);

		if (!p)
			abort();
		sum += p[0] + p[left - 1];
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	volatile unsigned sum;
	struct symbols symbols = { 0 };
	struct image image = { 0 };
	struct elf_file file;

	if (!elf_file_read("fuzz", (struct bytes){ data, size }, &file, NULL)) {
		for (size_t i = 0; i < file.segments.count; i++) {
			const struct elf_segment *segment = &file.segments.items[i];

			(void)image_add(&image, segment->address, data + segment->offset,
					segment->size);
		}
		sum = read_all(&image);
		(void)sum;
		if (!elf_file_symbols(&file, ELF_ADDRESSES, &file, &symbols) &&
		    !elf_file_symbols(&file, ELF_OFFSETS, &file, &symbols) &&
		    !elf_plt_symbols(&file, &symbols))
			(void)symbols_finish(&symbols, false);
	}
	elf_file_close(&file);
	image_free(&image);
	symbols_free(&symbols);
	return 0;
}
