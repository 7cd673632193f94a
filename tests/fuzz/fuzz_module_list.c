#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "decode/base/text.h"
#include "guest/bpf_symbols.h"
#include "guest/module_list.h"
#include "guest/module_symbols.h"
#include "guest/page_walk.h"
#include "tests/fake_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BYTES = 1 << 20, HALF = MEMORY_BYTES / 2, PAGE = FAKE_MEMORY_PAGE };

/* The last page of a kernel's image, and the memory of its modules. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint64_t image_end = 0xffffffff96801000;
	struct fake_memory memory;
	static struct page_walk walk;
	struct module_list list;
	struct text text = { 0 };

	if (size <= PAGE || size > HALF)
		return 0;
	fake_memory_init(&memory, MEMORY_BYTES, false);
	(void)fake_memory_put(&memory, image_end - PAGE, data, PAGE, FAKE_MEMORY_DATA);
	(void)fake_memory_put(&memory, 0xffffffffc0000000, data + PAGE, size - PAGE,
			      FAKE_MEMORY_DATA);
	page_walk_init(&walk, &memory.reader, memory.root);
	if (!module_list_find(&walk, image_end, &list, NULL))
		module_list_print(&list, &text);
	for (size_t i = 0; i < list.count; i++)
		(void)module_symbols_print(&walk, &list.items[i], HALF, &text);
	bpf_symbols_print(&walk, image_end - PAGE, image_end, &text);
	module_list_free(&list);
	text_free(&text);
	fake_memory_deinit(&memory);
	return 0;
}
