/* Pieces of any bytes as two copies of a kernel's memory: the changes written of the second are an
 * ELF file of whole pages. */
#include <string.h>

#include "decode/base/mapped_file.h"
#include "decode/code/elf_file.h"
#include "guest/kcore_changes.h"
#include "tests/fake_tree.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH = 96, PAGE = 4096 };

static void check(const char *path, uint64_t pages)
{
	struct elf_file file;
	struct bytes bytes;
	uint64_t found = 0;

	if (mapped_file_open(path, &bytes, NULL) || elf_file_read(path, bytes, &file, NULL) ||
	    file.cut_segments)
		abort();
	for (size_t i = 0; i < file.segments.count; i++)
		found += file.segments.items[i].size / PAGE;
	if (found < pages)
		abort();
	elf_file_close(&file);
	mapped_file_close(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes rest = { data, size }, first = fuzz_piece(&rest), second = fuzz_piece(&rest);
	char before[PATH], after[PATH], path[PATH];
	struct kcore_changes changes = { 0 };
	struct fake_tree tree;

	if (!first.size || !second.size)
		return 0;
	fake_tree_init(&tree);
	fake_tree_bytes(&tree, first.data, first.size, "before/kcore");
	fake_tree_bytes(&tree, second.data, second.size, "after/kcore");
	(void)snprintf(before, sizeof(before), "%s/before", tree.path);
	(void)snprintf(after, sizeof(after), "%s/after", tree.path);
	(void)snprintf(path, sizeof(path), "%s/kcore", tree.path);
	if (!kcore_changes_write(before, after, path, &changes, NULL) &&
	    changes.changed + changes.added > changes.left_out)
		check(path, changes.changed + changes.added - changes.left_out);
	fake_tree_deinit(&tree);
	return 0;
}
