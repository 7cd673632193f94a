#include "host/machine/build_ids.h"

#include <assert.h>
#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "decode/base/cleanup.h"
#include "decode/base/vec.h"
#include "decode/code/elf_file.h"
#include "decode/perf/perf_record.h"
#include "guest/guest_modules.h"
#include "host/machine/kernel_file.h"
#include "host/machine/map_line.h"
#include "host/machine/module_files.h"

enum {
	HAS_SIZE = 1 << 15, /* the entry says how long the id is */
	NOTES_BYTES = 4096,
	HEAD_BYTES = 64 << 10, /* of a file: where linkers put the note */
	NAME_ALIGN = 64,
};

struct section_entry {
	uint32_t type;
	uint16_t misc, size;
	int32_t pid;
	uint8_t id[BUILD_ID_BYTES], id_size, padding[3];
};

static_assert(sizeof(struct section_entry) == 36, "as perf has it");

static bool is_known(const struct build_ids *ids, const char *name)
{
	for (size_t i = 0; i < ids->count; i++)
		if (!strcmp(ids->items[i].name, name))
			return true;
	return false;
}

static int add(struct build_ids *ids, uint16_t cpumode, pid_t pid, const char *name,
	       const struct build_id *id)
{
	struct build_ids_entry entry = { *id, cpumode, pid, NULL };

	if (!id->size || ids->count == BUILD_IDS_MAX)
		return 0;
	entry.name = strdup(name);
	if (entry.name && vec_push(ids, entry))
		return 0;
	free(entry.name);
	return -PTVM_NO_MEMORY;
}

/* The build id in a file of notes, as sysfs has it. */
static struct build_id read_notes(const char *directory, const char *name)
{
	char notes[NOTES_BYTES];
	struct build_id id = { .size = 0 };
	int size = kernel_file_read(notes, sizeof(notes), "%s/%s", directory, name);

	if (size > 0)
		(void)build_id_find((struct bytes){ (const uint8_t *)notes, (size_t)size }, &id);
	return id;
}

static struct build_id read_elf(struct bytes bytes)
{
	struct build_id id = { .size = 0 };
	struct elf_file elf;

	if (!elf_file_read("", bytes, &elf, NULL))
		id = elf.build_id;
	elf_file_close(&elf);
	return id;
}

/* Every process has the vDSO, we too. Its notes are in its first page. */
static struct build_id read_vdso(void)
{
	const Elf64_Ehdr *vdso = (const Elf64_Ehdr *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);

	if (!vdso || memcmp(vdso->e_ident, ELFMAG, SELFMAG) != 0)
		return (struct build_id){ .size = 0 };
	return read_elf((struct bytes){ (const uint8_t *)vdso, NOTES_BYTES });
}

static int add_module(struct build_ids *ids, const struct roots *roots, struct module_files *files,
		      const char *name)
{
	char directory[PATH_MAX], path[PATH_MAX];
	struct build_id id;

	(void)snprintf(directory, sizeof(directory), "%s/module/%s/notes", roots->sys, name);
	id = read_notes(directory, ".note.gnu.build-id");
	module_files_name(files, name, path);
	return add(ids, PERF_CPUMODE_KERNEL, -1, path, &id);
}

static int add_modules(struct build_ids *ids, const struct roots *roots)
{
	struct module_files *files = module_files_open(roots);
	_cleanup_fclose_ FILE *modules = NULL;
	_cleanup_free_ char *line = NULL;
	char path[PATH_MAX], name[64];
	size_t room = 0;
	int r = 0;

	(void)snprintf(path, sizeof(path), "%s/modules", roots->proc);
	modules = fopen(path, "re");
	while (modules && !r && getline(&line, &room, modules) > 0)
		if (sscanf(line, "%63s", name) == 1 && !strchr(name, '/'))
			r = add_module(ids, roots, files, name);
	module_files_close(files);
	return r;
}

int build_ids_add_host(struct build_ids *ids, const struct roots *roots)
{
	char directory[PATH_MAX];
	struct build_id id;
	int r;

	(void)snprintf(directory, sizeof(directory), "%s/kernel", roots->sys);
	id = read_notes(directory, "notes");
	r = add(ids, PERF_CPUMODE_KERNEL, -1, "[kernel.kallsyms]", &id);
	if (!r)
		r = add_modules(ids, roots);
	id = read_vdso();
	return r ? r : add(ids, PERF_CPUMODE_USER, -1, "[vdso]", &id);
}

/* The file may shrink meanwhile: then reading it fails, where a mapping of it would end us. */
static bool read_head(const char *path, struct build_id *ret)
{
	_cleanup_free_ uint8_t *head = malloc(HEAD_BYTES);
	_cleanup_close_ int fd = -1;
	struct stat status;
	ssize_t size;

	/* Before it is opened: opening a device can have effects. */
	if (!head || stat(path, &status) || !S_ISREG(status.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size = fd < 0 ? -1 : pread(fd, head, HEAD_BYTES, 0);
	if (size <= 0)
		return false;
	*ret = read_elf((struct bytes){ head, (size_t)size });
	return true;
}

/* The file that is mapped itself, where we may open it; otherwise what has its name now. */
static int add_file(struct build_ids *ids, const struct roots *roots, pid_t pid,
		    const struct map_line *map)
{
	struct build_id id = { .size = 0 };
	char path[PATH_MAX];

	if (is_known(ids, map->name))
		return 0;
	(void)snprintf(path, sizeof(path), "%s/%d/map_files/%" PRIx64 "-%" PRIx64, roots->proc, pid,
		       map->from, map->to);
	if (!read_head(path, &id))
		(void)read_head(map->name, &id);
	return add(ids, PERF_CPUMODE_USER, -1, map->name, &id);
}

int build_ids_add_process(struct build_ids *ids, const struct roots *roots, pid_t pid)
{
	_cleanup_(map_lines_close) struct map_lines maps = { 0 };
	struct map_line map;
	int r = 0;

	(void)map_lines_open(roots, pid, &maps, NULL);
	while (!r && map_lines_next(&maps, &map))
		if (map.protection & MAP_CAN_RUN && map.name[0] == '/' && map.name[1] != '/')
			r = add_file(ids, roots, pid, &map);
	return r;
}

int build_ids_add_guest(struct build_ids *ids, pid_t pid, const char *text)
{
	char name[64], byte[3] = "";
	struct build_id id = { .size = 0 };

	while (id.size < sizeof(id.bytes) && isxdigit((unsigned char)text[0]) &&
	       isxdigit((unsigned char)text[1])) {
		memcpy(byte, text, 2);
		id.bytes[id.size++] = (uint8_t)strtoul(byte, NULL, 16);
		text += 2;
	}
	(void)snprintf(name, sizeof(name), "[guest.kernel.kallsyms.%d]", pid);
	return add(ids, PERF_CPUMODE_GUEST_KERNEL, pid, name, &id);
}

int build_ids_add_guest_modules(struct build_ids *ids, pid_t pid,
				const struct guest_modules *modules)
{
	char name[128];
	int r = 0;

	for (size_t i = 0; i < modules->count && !r; i++) {
		const struct guest_module *module = &modules->items[i];

		(void)snprintf(name, sizeof(name), "[%s]", module->name);
		r = add(ids, PERF_CPUMODE_GUEST_KERNEL, pid, module->path ? module->path : name,
			&module->id);
	}
	return r;
}

static void put(FILE *file, const struct build_ids_entry *from)
{
	const size_t length = strlen(from->name) + 1;
	const size_t padded = (length + NAME_ALIGN - 1) / NAME_ALIGN * NAME_ALIGN;
	struct section_entry entry = {
		.misc = from->cpumode | HAS_SIZE,
		.size = (uint16_t)(sizeof(entry) + padded),
		.pid = from->pid,
		.id_size = from->id.size,
	};

	memcpy(entry.id, from->id.bytes, from->id.size);
	(void)fwrite(&entry, sizeof(entry), 1, file);
	(void)fwrite(from->name, 1, length, file);
	for (size_t i = length; i < padded; i++)
		(void)fputc(0, file);
}

int build_ids_section(const struct build_ids *ids, void **ret, size_t *ret_size)
{
	char *data = NULL;
	FILE *file = open_memstream(&data, ret_size);
	int failed;

	if (!file)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < ids->count; i++)
		put(file, &ids->items[i]);
	failed = ferror(file);
	if (fclose(file) || failed) {
		free(data);
		return -PTVM_NO_MEMORY;
	}
	*ret = data;
	return 0;
}

void build_ids_free(struct build_ids *ids)
{
	for (size_t i = 0; i < ids->count; i++)
		free(ids->items[i].name);
	vec_free(ids);
}
