#include "decode/code/dso.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "decode/base/cleanup.h"
#include "decode/base/error.h"
#include "decode/base/mapped_file.h"
#include "decode/code/demangle.h"
#include "decode/code/elf_file.h"
#include "decode/code/elf_plt.h"

static bool is_vdso(const struct dso *dso)
{
	return !strcmp(dso->name, "[vdso]");
}

/* PLACE/.build-id/xx/yyyy SUFFIX; false when there is no build id or no room. */
static bool build_id_path(const struct dso *dso, const char *place, const char *suffix,
			  char ret[PATH_MAX])
{
	char hex[BUILD_ID_TEXT_BYTES];
	int n;

	if (dso->build_id.size < 2 || !place)
		return false;
	(void)build_id_text(&dso->build_id, hex);
	n = snprintf(ret, PATH_MAX, "%s/.build-id/%.2s/%s%s", place, hex, hex + 2, suffix);
	return n > 0 && n < PATH_MAX;
}

static bool has_build_id(const struct elf_file *file, const struct dso *dso)
{
	return !build_id_compare(&file->build_id, &dso->build_id);
}

/* Whether these bytes are the file that was mapped. Without a build id nobody can tell. */
static bool is_same(const char *path, struct bytes bytes, const struct dso *dso)
{
	struct elf_file file;
	bool same;

	if (!dso->build_id.size)
		return true;
	same = !elf_file_read(path, bytes, &file, NULL) && has_build_id(&file, dso);
	elf_file_close(&file);
	return same;
}

/* Use the file at `path` if it is the right one; the first reason why not is kept in `note`. */
static bool try_path(struct dso *dso, const char *path, char *note, size_t size)
{
	struct ptvm_error error = { 0 };
	struct bytes bytes;

	if (mapped_file_open(path, &bytes, &error)) {
		if (!*note)
			(void)snprintf(note, size, "%s", error.message);
		return false;
	}
	if (!is_same(path, bytes, dso)) {
		(void)snprintf(note, size, "%s: not the file that was traced (other build id)",
			       path);
		mapped_file_close(&bytes);
		return false;
	}
	dso->file = bytes;
	dso->is_mapped = true;
	*note = '\0';
	return true;
}

static bool try_cache(struct dso *dso, const struct dso_places *places, const char *suffix,
		      char *note, size_t size)
{
	char path[PATH_MAX];

	return build_id_path(dso, places->build_id_dir, suffix, path) &&
	       try_path(dso, path, note, size);
}

/* The vDSO of this process. Only /proc/self/maps says where it ends. */
static struct bytes own_vdso(void)
{
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end, vdso = getauxval(AT_SYSINFO_EHDR);
	char line[512];

	while (maps && vdso && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start == vdso)
			return (struct bytes){ (const uint8_t *)start, end - start };
	return (struct bytes){ NULL, 0 };
}

static void find_vdso(struct dso *dso, const struct dso_places *places, char *note, size_t size)
{
	struct bytes own = own_vdso();

	if (try_cache(dso, places, "/vdso", note, size))
		return;
	*note = '\0';
	/* The vDSO of another kernel looks much the same: without a build id ours is not used. */
	if (dso->build_id.size && own.data && is_same(dso->name, own, dso))
		dso->file = own;
	else
		(void)snprintf(note, size, "[vdso]: no copy with the traced build id");
}

static void find_file(struct dso *dso, const struct dso_places *places, char *note, size_t size)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s", places->symfs ? places->symfs : "", dso->name);

	if (n > 0 && n < PATH_MAX && try_path(dso, path, note, size))
		return;
	(void)try_cache(dso, places, "/elf", note, size);
}

/* Symbols of a separate debug file, if there is one with a full table and the right build id. */
static bool read_debug_file(struct dso *dso, const char *path, const struct elf_file *layout)
{
	struct elf_file file;
	struct bytes bytes;
	bool usable;

	if (mapped_file_open(path, &bytes, NULL))
		return false;
	usable = !elf_file_read(path, bytes, &file, NULL) && has_build_id(&file, dso) &&
		 elf_file_has_symtab(&file);
	if (usable)
		(void)elf_file_symbols(&file, ELF_OFFSETS, layout, &dso->symbols);
	elf_file_close(&file);
	mapped_file_close(&bytes);
	return usable;
}

static bool read_debug_files(struct dso *dso, const struct dso_places *places,
			     const struct elf_file *layout)
{
	char system_place[PATH_MAX], path[PATH_MAX];
	int n = snprintf(system_place, sizeof(system_place), "%s/usr/lib/debug",
			 places->symfs ? places->symfs : "");

	if (build_id_path(dso, places->build_id_dir, "/debug", path) &&
	    read_debug_file(dso, path, layout))
		return true;
	return n > 0 && n < PATH_MAX && build_id_path(dso, system_place, ".debug", path) &&
	       read_debug_file(dso, path, layout);
}

static void read_symbols(struct dso *dso, const struct dso_places *places)
{
	struct elf_file file;

	if (!elf_file_read(dso->name, dso->file, &file, NULL)) {
		if (!dso->build_id.size)
			dso->build_id = file.build_id;
		if (elf_file_has_symtab(&file) || !read_debug_files(dso, places, &file))
			(void)elf_file_symbols(&file, ELF_OFFSETS, &file, &dso->symbols);
		(void)elf_plt_symbols(&file, &dso->symbols);
		if (!places->keep_mangled)
			demangle_symbols(&dso->symbols);
		(void)symbols_finish(&dso->symbols, false);
	}
	elf_file_close(&file);
}

void dso_load(struct dso *dso, const struct dso_places *places, char *note, size_t size)
{
	*note = '\0';
	if (is_vdso(dso))
		find_vdso(dso, places, note, size);
	else if (dso->name[0] == '/' && !dso->is_anonymous)
		find_file(dso, places, note, size);
	if (dso->file.size)
		read_symbols(dso, places);
}

void dso_unload(struct dso *dso)
{
	if (dso->is_mapped)
		mapped_file_close(&dso->file);
	symbols_free(&dso->symbols);
	free(dso->note);
}
