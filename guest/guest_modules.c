#include "guest/guest_modules.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/monotonic.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/code/modules.h"
#include "guest/channel.h"

enum { NOTE_BYTES = 4096, NAME_BYTES = 64, NUMBER_BYTES = 24 };

static const char root[] = "/lib/modules/", id_file[] = GUEST_MODULES_ID_FILE;

static int compare(const void *a, const void *b)
{
	const struct guest_module *left = a, *right = b;

	return strcmp(left->name, right->name);
}

SORT_BY(compare_sections, struct guest_section, address)

bool guest_modules_is_name(const char *text, size_t size)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-.";

	return size && size < NAME_BYTES && strspn(text, legal) >= size;
}

/* Names come in brackets. */
int guest_modules_name(const struct modules *modules, struct guest_modules *ret)
{
	ret->items = calloc(modules->count + 1, sizeof(*ret->items));
	if (!ret->items)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < modules->count; i++) {
		const char *name = modules->items[i].name + 1, *copy;
		size_t size = strlen(name) - 1;

		if (!guest_modules_is_name(name, size))
			continue;
		copy = arena_strndup(&ret->arena, name, size);
		if (!copy)
			return -PTVM_NO_MEMORY;
		ret->items[ret->count++] =
			(struct guest_module){ .name = copy, .start = modules->items[i].start };
	}
	sort_vec(ret, compare);
	return 0;
}

/* The module's name is that of its file up to ".ko", with dashes made underscores. */
static bool name_of_path(const char *path, size_t size, char ret[NAME_BYTES])
{
	const char *slash = memrchr(path, '/', size);
	const char *start = slash ? slash + 1 : path;
	const char *end = memmem(start, size - (size_t)(start - path), ".ko", 3);
	size_t length = end ? (size_t)(end - start) : 0;

	if (!length || length >= NAME_BYTES)
		return false;
	memcpy(ret, start, length);
	ret[length] = '\0';
	for (char *c = ret; *c; c++)
		if (*c == '-')
			*c = '_';
	return true;
}

static bool is_plain(const char *path)
{
	for (const char *c = path; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return !strncmp(path, root, strlen(root)) && !strstr(path, "/..");
}

static struct guest_module *module_of(const struct guest_modules *modules, const char *name)
{
	return (struct guest_module *)(uintptr_t)guest_modules_find(modules, name);
}

static int take_path(const char *path, size_t size, const char *release,
		     struct guest_modules *modules)
{
	const char *directory = path[0] == '/' ? "" : root;
	char whole[CHANNEL_PATH_BYTES], name[NAME_BYTES];
	struct guest_module *module;
	int length;

	if (!name_of_path(path, size, name))
		return 0;
	module = module_of(modules, name);
	length = snprintf(whole, sizeof(whole), "%s%s%s%.*s", directory, *directory ? release : "",
			  *directory ? "/" : "", (int)size, path);
	if (!module || length >= (int)sizeof(whole) || !is_plain(whole))
		return 0;
	module->path = arena_strndup(&modules->arena, whole, (size_t)length);
	return module->path ? 0 : -PTVM_NO_MEMORY;
}

int guest_modules_find_paths(const char *text, size_t size, const char *release,
			     struct guest_modules *modules)
{
	const char *end = text + size, *next, *colon;
	int r = 0;

	for (const char *line = text; line < end && !r; line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next : end;
		colon = memchr(line, ':', (size_t)(next - line));
		if (colon && colon - line < CHANNEL_PATH_BYTES)
			r = take_path(line, (size_t)(colon - line), release, modules);
	}
	return r;
}

/* /lib is a link to /usr/lib on some systems, and channels follow no links. */
static int read_paths(struct channel *channel, const char *release, struct guest_modules *modules)
{
	static const char *const places[] = { "", "/usr" };
	_cleanup_free_ char *text = malloc(GUEST_MODULES_DEP_BYTES);
	char path[CHANNEL_PATH_BYTES];
	int size = -1;

	if (!text)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < 2 && size <= 0; i++) {
		(void)snprintf(path, sizeof(path), "%s%s%s/modules.dep", places[i], root, release);
		size = channel_read_text(channel, path, text, GUEST_MODULES_DEP_BYTES, NULL);
	}
	return size > 0 ? guest_modules_find_paths(text, (size_t)size, release, modules) : 0;
}

static void take_build_id(struct guest_module *module, const char *notes, size_t size)
{
	(void)build_id_find((struct bytes){ (const uint8_t *)notes, size }, &module->id);
}

static bool is_section(const char *name)
{
	static const char *const kinds[] = { ".text",   ".init.", ".exit.", ".noinstr.",
					     ".rodata", ".data",  ".bss" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(name, kinds[i], strlen(kinds[i])))
			return guest_modules_is_name(name, strlen(name));
	return false;
}

/* The kernel shows zeroes where it hides addresses. */
static int take_section(struct guest_modules *modules, struct guest_module *module,
			const char *name, const char *text)
{
	struct guest_section section = { .address = strtoull(text, NULL, 16) };

	if (!is_section(name) || !section.address ||
	    module->sections.count == GUEST_MODULES_SECTIONS)
		return 0;
	section.name = arena_strndup(&modules->arena, name, strlen(name));
	if (!section.name || !vec_push(&module->sections, section))
		return -PTVM_NO_MEMORY;
	return 0;
}

/* Split "==> /sys/module/NAME/FILE <==" into its parts. */
static bool part_title(char *title, const char **ret_name, const char **ret_file)
{
	static const char begin[] = "==> /sys/module/", end[] = " <==";
	const size_t length = strlen(title);
	char *slash;

	if (length < strlen(begin) + strlen(end) || strncmp(title, begin, strlen(begin)) ||
	    strcmp(title + length - strlen(end), end))
		return false;
	title[length - strlen(end)] = '\0';
	*ret_name = title + strlen(begin);
	slash = strchr(*ret_name, '/');
	if (!slash)
		return false;
	*slash = '\0';
	*ret_file = slash + 1;
	return true;
}

static int take_file(struct guest_modules *modules, const char *title, size_t title_size,
		     const char *text, size_t size)
{
	static const char sections[] = "sections/";
	char copy[CHANNEL_PATH_BYTES], number[NUMBER_BYTES];
	struct guest_module *module;
	const char *name, *file;

	if (title_size >= sizeof(copy))
		return 0;
	memcpy(copy, title, title_size);
	copy[title_size] = '\0';
	module = part_title(copy, &name, &file) ? module_of(modules, name) : NULL;
	if (!module)
		return 0;
	if (!strcmp(file, id_file))
		take_build_id(module, text, size);
	if (strncmp(file, sections, strlen(sections)) != 0)
		return 0;
	(void)snprintf(number, sizeof(number), "%.*s", (int)(size < NUMBER_BYTES ? size : 0), text);
	return take_section(modules, module, file + strlen(sections), number);
}

static void sort_sections(struct guest_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		if (modules->items[i].sections.count)
			qsort(modules->items[i].sections.items, modules->items[i].sections.count,
			      sizeof(struct guest_section), compare_sections);
}

int guest_modules_take_files(const char *text, size_t size, struct guest_modules *modules)
{
	static const char mark[] = "==> ";
	const char *end = text + size, *at = memmem(text, size, mark, strlen(mark)), *line, *next;
	int r = 0;

	while (at && !r) {
		line = memchr(at, '\n', (size_t)(end - at));
		if (!line)
			break;
		next = memmem(line, (size_t)(end - line), mark, strlen(mark));
		r = take_file(modules, at, (size_t)(line - at), line + 1,
			      (size_t)((next ? next : end) - line - 1));
		at = next;
	}
	sort_sections(modules);
	return r;
}

static void read_build_id(struct channel *channel, struct guest_module *module)
{
	char path[CHANNEL_PATH_BYTES], notes[NOTE_BYTES];
	int size;

	(void)snprintf(path, sizeof(path), "/sys/module/%s/%s", module->name, id_file);
	size = channel_read_text(channel, path, notes, sizeof(notes), NULL);
	if (size > 0)
		take_build_id(module, notes, (size_t)size);
}

static bool has_time(const struct channel *channel, int64_t end_ms)
{
	return channel->way->opens_fast || monotonic_ms() < end_ms;
}

static int read_section(struct channel *channel, struct guest_modules *modules,
			struct guest_module *module, const char *name)
{
	char path[CHANNEL_PATH_BYTES], number[NUMBER_BYTES];

	if (!is_section(name))
		return 0;
	(void)snprintf(path, sizeof(path), "/sys/module/%s/sections/%.*s", module->name, NAME_BYTES,
		       name);
	return channel_read_text(channel, path, number, sizeof(number), NULL) > 0
		       ? take_section(modules, module, name, number)
		       : 0;
}

static int read_sections(struct channel *channel, struct guest_modules *modules,
			 struct guest_module *module)
{
	char directory[CHANNEL_PATH_BYTES], names[NOTE_BYTES];
	int size, r = 0;

	(void)snprintf(directory, sizeof(directory), "/sys/module/%s/sections", module->name);
	size = channel_list(channel, directory, names, sizeof(names));
	for (const char *name = names; name - names < size && !r; name += strlen(name) + 1)
		r = read_section(channel, modules, module, name);
	return r;
}

/* Where directories cannot be listed, try the names that most modules have: each in all modules
 * before the next one, since time may run out. */
static int try_sections(struct channel *channel, struct guest_modules *modules, int64_t end_ms)
{
	static const char *const usual[] = {
		".text", ".init.text",     ".exit.text",    ".rodata",           ".data",
		".bss",  ".text.unlikely", ".noinstr.text", ".data..read_mostly"
	};
	int r = 0;

	for (size_t k = 0; k < sizeof(usual) / sizeof(usual[0]); k++)
		for (size_t i = 0; i < modules->count && !r && has_time(channel, end_ms); i++)
			r = read_section(channel, modules, &modules->items[i], usual[k]);
	return r;
}

/* One file after the other. */
static int read_files(struct channel *channel, struct guest_modules *modules)
{
	const int64_t end_ms = monotonic_ms() + GUEST_MODULES_SECONDS * MS_PER_S;
	int r = 0;

	for (size_t i = 0; i < modules->count && !r && has_time(channel, end_ms); i++) {
		read_build_id(channel, &modules->items[i]);
		if (channel->way->list)
			r = read_sections(channel, modules, &modules->items[i]);
	}
	if (!r && !channel->way->list)
		r = try_sections(channel, modules, end_ms);
	sort_sections(modules);
	return r;
}

/* All at once. */
static int run_head(struct channel *channel, struct guest_modules *modules)
{
	_cleanup_free_ char *text = malloc(GUEST_MODULES_FILES_BYTES);
	int size;

	if (!text)
		return -PTVM_NO_MEMORY;
	size = channel_run_text(channel,
				"head -c 64 /sys/module/*/notes/.note.gnu.build-id "
				"/sys/module/*/sections/.[tienrdb]* 2>/dev/null; :",
				text, GUEST_MODULES_FILES_BYTES, NULL);
	return size > 0 ? guest_modules_take_files(text, (size_t)size, modules) : 0;
}

int guest_modules_read(struct channel *channel, const struct modules *loaded, const char *release,
		       struct guest_modules *ret)
{
	int r = guest_modules_name(loaded, ret);

	if (!r && ret->count && *release)
		r = read_paths(channel, release, ret);
	if (!r && ret->count)
		r = channel->way->run ? run_head(channel, ret) : read_files(channel, ret);
	return r;
}

const struct guest_module *guest_modules_find(const struct guest_modules *modules, const char *name)
{
	const struct guest_module key = { .name = name };

	return modules->count ? bsearch(&key, modules->items, modules->count, sizeof(key), compare)
			      : NULL;
}

/* Distances from the module's address. */
static json_t *sections_json(const struct guest_module *module)
{
	json_t *json = module->sections.count ? json_object() : NULL;

	for (size_t i = 0; i < module->sections.count; i++) {
		const struct guest_section *section = &module->sections.items[i];

		(void)json_object_set_new(
			json, section->name,
			json_integer((json_int_t)(section->address - module->start)));
	}
	return json;
}

static json_t *module_json(const struct guest_module *module)
{
	char id[BUILD_ID_TEXT_BYTES];

	return json_pack("{s:s, s:s*, s:s*, s:o*}", "name", module->name, "path", module->path,
			 "build_id", module->id.size ? build_id_text(&module->id, id) : NULL,
			 "sections", sections_json(module));
}

json_t *guest_modules_json(const struct guest_modules *modules)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < modules->count; i++)
		(void)json_array_append_new(list, module_json(&modules->items[i]));
	return list;
}

void guest_modules_free(struct guest_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		vec_free(&modules->items[i].sections);
	free(modules->items);
	arena_free(&modules->arena);
	memset(modules, 0, sizeof(*modules));
}
