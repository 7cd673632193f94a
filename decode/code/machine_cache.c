/* The host's kernel for a recording that brings none: as perf keeps it by its build id, or as it
 * runs now. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/search.h"
#include "decode/code/kallsyms.h"
#include "decode/code/machine_parts.h"

static bool has_module(const struct modules *modules, const struct named_range *range)
{
	const struct module *items = modules->items;
	const size_t at = search_sorted(modules->count, i, items[i].start < range->start);

	return at < modules->count && items[at].start == range->start &&
	       !strcmp(items[at].name, range->name);
}

/* Whether the modules of the recording are in this file, where they were (perf's
 * validate_kcore_modules()). */
static bool has_modules(const struct machine *machine, const char *path)
{
	struct modules modules = { 0 };
	bool same = path && !modules_load(path, &modules, NULL);

	for (size_t i = 0; same && i < machine->maps.list.count; i++) {
		const struct named_range *range = &machine->maps.list.items[i];

		same = range->name == machine->kernel_name || has_module(&modules, range);
	}
	modules_free(&modules);
	return same;
}

/* Whether a copy is of the same boot: the kernel lies at another address in each (KASLR). */
static bool is_where_it_was(const struct machine *machine, const char *path)
{
	struct symbols symbols = { 0 };
	bool same =
		path && !kallsyms_load(path, &symbols, NULL) &&
		(!machine->reference_name ||
		 symbols_address(&symbols, machine->reference_name) == machine->reference_address);

	symbols_free(&symbols);
	return same;
}

/* The copy in a directory, no files if there is none or it does not fit the recording. */
static struct kernel_files copy_in(struct machine *machine, const char *directory)
{
	struct kernel_files files = machine_kernel_files(machine, directory);

	return has_modules(machine, files.modules) && is_where_it_was(machine, files.kallsyms)
		       ? files
		       : (struct kernel_files){ 0 };
}

static int is_named(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The last of the kernel's copies, which are named by their times, that fits the recording. */
static struct kernel_files find_copy(struct machine *machine, const char *directory)
{
	struct kernel_files files = { 0 };
	struct dirent **names;
	int count = scandir(directory, &names, is_named, alphasort);

	if (count < 0)
		return files;
	for (int i = count - 1; i >= 0; i--) {
		const char *path =
			files.kcore ? NULL : machine_path(machine, directory, names[i]->d_name);

		if (path)
			files = copy_in(machine, path);
		free(names[i]);
	}
	free(names);
	return files;
}

/* Whether this kernel runs now. */
static bool is_running(const struct build_id *id)
{
	_cleanup_fclose_ FILE *notes = fopen("/sys/kernel/notes", "re");
	struct build_id own;
	uint8_t bytes[4096];
	size_t size = notes ? fread(bytes, 1, sizeof(bytes), notes) : 0;

	return build_id_find((struct bytes){ bytes, size }, &own) && !build_id_compare(id, &own);
}

struct kernel_files machine_cached_kernel(struct machine *machine)
{
	const struct dso_places *places = &machine->places;
	struct kernel_files files = { 0 };
	char hex[BUILD_ID_TEXT_BYTES], path[PATH_MAX];
	int n;

	if (!machine->kernel_id.size || !places->build_id_dir || *places->symfs)
		return files;
	(void)build_id_text(&machine->kernel_id, hex);
	n = snprintf(path, sizeof(path), "%s/[kernel.kcore]/%s", places->build_id_dir, hex);
	if (n > 0 && n < PATH_MAX)
		files = find_copy(machine, path);
	n = snprintf(path, sizeof(path), "%s/[kernel.kallsyms]/%s", places->build_id_dir, hex);
	if (!files.kallsyms && n > 0 && n < PATH_MAX)
		files.kallsyms = machine_path(machine, path, "kallsyms");
	if (!files.kallsyms && is_running(&machine->kernel_id)) {
		files.kallsyms = machine_path(machine, "/proc", "kallsyms");
		files.modules = machine_path(machine, "/proc", "modules");
	}
	return files;
}
