/* record_here ARGUMENT...: `ptvm record` on this machine's kernel, with all but the trace itself:
 * intel_pt is an event that counts nothing, and its buffer is memory that nobody writes to. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/machine/perf_kernel.h"
#include "host/record/record.h"
#include "host/record/record_options.h"
#include "tests/fake_tree.h"

enum { PT_TYPE = 99 };

static struct perf_kernel here;

static int open_event(void *context, struct perf_event_attr *attr, pid_t tid, int cpu, int group_fd)
{
	struct perf_event_attr dummy = *attr;

	if (attr->type == PT_TYPE) {
		dummy.type = PERF_TYPE_SOFTWARE;
		dummy.config = PERF_COUNT_SW_DUMMY;
		dummy.aux_watermark = 0;
	}
	return here.open(here.context, &dummy, tid, cpu, group_fd);
}

static void *map(void *context, size_t size, int protection, int fd, off_t offset)
{
	if (offset)
		return mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return here.map(here.context, size, protection, fd, offset);
}

/* This machine's, with a PMU. */
static void make_tree(struct fake_tree *tree)
{
	char online[256] = "";
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");

	if (file && fgets(online, sizeof(online), file))
		fake_tree_file(tree, online, "sys/devices/system/cpu/online");
	if (file)
		(void)fclose(file);
	fake_tree_file(tree, "99\n", "sys/bus/event_source/devices/intel_pt/type");
	fake_tree_file(tree, "1\n", "sys/bus/event_source/devices/intel_pt/caps/psb_cyc");
	fake_tree_file(tree, "config:1\n", "sys/bus/event_source/devices/intel_pt/format/cyc");
	fake_tree_file(tree, "config:10\n", "sys/bus/event_source/devices/intel_pt/format/tsc");
	tree->roots.proc = "/proc";
}

int main(int argc, char **argv)
{
	struct perf_kernel kernel = here = perf_kernel_here();
	struct record_options options;
	struct ptvm_error error = { 0 };
	struct fake_tree tree;
	int r = record_options_parse(argc, argv, &options, &error);

	kernel.open = open_event;
	kernel.map = map;
	fake_tree_init(&tree);
	make_tree(&tree);
	if (!r)
		r = record(&tree.roots, &kernel, &options, argc, argv, &error);
	if (r < 0)
		(void)fprintf(stderr, "record_here: %s\n", error.message);
	record_options_free(&options);
	fake_tree_deinit(&tree);
	return r < 0 ? 1 : r;
}
