/* Pieces of any bytes as a process's files in /proc: its arguments, which may be those of a VM, its
 * name, and its maps. */
#include <string.h>

#include "host/machine/map_line.h"
#include "host/vm/vm_process.h"
#include "tests/fake_tree.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PID = 4711 };

static void check_maps(const struct fake_tree *tree)
{
	struct map_lines lines;
	struct map_line map;

	if (!map_lines_open(&tree->roots, PID, &lines, NULL))
		while (map_lines_next(&lines, &map))
			if (map.from > map.to || !map.name)
				abort();
	map_lines_close(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = { "proc/4711/cmdline", "proc/4711/comm",
					     "proc/4711/maps" };
	struct bytes rest = { data, size };
	struct vm_process process;
	struct fake_tree tree;

	fake_tree_init(&tree);
	fake_tree_link(&tree, "anon_inode:kvm-vcpu:0", "proc/4711/fd/9");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const struct bytes piece = fuzz_piece(&rest);

		fake_tree_bytes(&tree, piece.data ? piece.data : data, piece.size, files[i]);
	}
	if (!vm_process_read(&tree.roots, PID, &process, NULL)) {
		(void)strlen(process.comm);
		(void)vm_process_find(&tree.roots, process.name, &process, NULL);
	}
	check_maps(&tree);
	fake_tree_deinit(&tree);
	return 0;
}
