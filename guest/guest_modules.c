#include "guest/guest_modules.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/modules.h"
#include "guest/channel.h"

enum { NOTE_BYTES = 4096, NAME_BYTES = 64 };

static const char root[] = "/lib/modules/";

static int compare(const void *a, const void *b)
{
	const struct guest_module *left = a, *right = b;

	return strcmp(left->name, right->name);
}

/* What the kernel would call a module; a guest can write anything there. */
static bool is_name(const char *text, size_t size)
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

		if (!is_name(name, size))
			continue;
		copy = arena_strndup(&ret->arena, name, size);
		if (!copy)
			return -PTVM_NO_MEMORY;
		ret->items[ret->count++].name = copy;
	}
	qsort(ret->items, ret->count, sizeof(*ret->items), compare);
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

static int take_path(const char *path, size_t size, const char *release,
		     struct guest_modules *modules)
{
	const char *directory = path[0] == '/' ? "" : root;
	char whole[CHANNEL_PATH_BYTES], name[NAME_BYTES];
	struct guest_module *module;
	int length;

	if (!name_of_path(path, size, name))
		return 0;
	module = (struct guest_module *)(uintptr_t)guest_modules_find(modules, name);
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

/* /lib is a link to /usr/lib on some systems, and channels follow none. */
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

static void read_build_id(struct channel *channel, struct guest_module *module)
{
	char path[CHANNEL_PATH_BYTES], notes[NOTE_BYTES];
	int size;

	(void)snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", module->name);
	size = channel_read_text(channel, path, notes, sizeof(notes), NULL);
	if (size > 0)
		(void)build_id_find((struct bytes){ (const uint8_t *)notes, (size_t)size },
				    &module->id);
}

int guest_modules_read(struct channel *channel, const struct modules *loaded, const char *release,
		       struct guest_modules *ret)
{
	int r = guest_modules_name(loaded, ret);

	if (!r && ret->count && *release)
		r = read_paths(channel, release, ret);
	for (size_t i = 0; i < ret->count && !r && channel->way->opens_fast; i++)
		read_build_id(channel, &ret->items[i]);
	return r;
}

const struct guest_module *guest_modules_find(const struct guest_modules *modules, const char *name)
{
	const struct guest_module key = { .name = name };

	return modules->count ? bsearch(&key, modules->items, modules->count, sizeof(key), compare)
			      : NULL;
}

void guest_modules_free(struct guest_modules *modules)
{
	free(modules->items);
	arena_free(&modules->arena);
	memset(modules, 0, sizeof(*modules));
}
