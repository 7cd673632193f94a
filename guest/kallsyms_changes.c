#include "guest/kallsyms_changes.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/arena.h"
#include "decode/base/cleanup.h"
#include "decode/base/sort.h"
#include "decode/base/text_file.h"
#include "decode/base/vec.h"

/* Lines about modules. */
struct lines {
	const char **items;
	size_t count, room;
	struct arena text;
};

static void lines_free(struct lines *lines)
{
	vec_free(lines);
	arena_free(&lines->text);
}

/* Is it "ADDRESS TYPE NAME", a tab and "[MODULE]"? Others are not kept: a file of tabs would have a
 * pointer for every two bytes. */
static bool is_of_module(const char *line)
{
	const char *rest = line + strspn(line, "0123456789abcdefABCDEF");
	const char *tab = strchr(rest, '\t');

	return rest > line && tab && tab - rest > 3 && rest[0] == ' ' && rest[2] == ' ' &&
	       tab[1] == '[';
}

static int lines_read(const char *directory, struct lines *ret, struct ptvm_error *error)
{
	char path[PATH_MAX], *text, *end;
	size_t size;
	int r;

	(void)snprintf(path, sizeof(path), "%s/kallsyms", directory);
	r = text_file_read(path, &ret->text, &text, &size, error);
	if (r)
		return r;
	for (char *line = text; line < text + size; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + size - line));
		if (!end)
			break;
		*end = '\0';
		if (is_of_module(line) && !vec_push(ret, line))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const char *const *left = a, *const *right = b;

	return strcmp(*left, *right);
}

/* Keep of the lines those that are not among the others, which are sorted. */
static void drop_known(struct lines *lines, const struct lines *known)
{
	size_t kept = 0;

	for (size_t i = 0; i < lines->count; i++)
		if (!bsearch(&lines->items[i], known->items, known->count, sizeof(*known->items),
			     compare))
			lines->items[kept++] = lines->items[i];
	lines->count = kept;
}

static int write_lines(const struct lines *lines, const char *path, struct ptvm_error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	int r = 0;

	if (!file) {
		r = ptvm_fail_errno(error, "%s", path);
		if (fd >= 0)
			(void)close(fd);
		return r;
	}
	for (size_t i = 0; i < lines->count && r >= 0; i++)
		r = fprintf(file, "%s\n", lines->items[i]);
	if (fclose(file) || r < 0) {
		r = ptvm_fail_errno(error, "%s", path);
		(void)unlink(path);
		return r;
	}
	return 0;
}

int kallsyms_changes_write(const char *before, const char *after, const char *path,
			   struct ptvm_error *error)
{
	_cleanup_(lines_free) struct lines old = { 0 }, new = { 0 };
	int r = lines_read(before, &old, error);

	if (!r)
		r = lines_read(after, &new, error);
	if (r)
		return r;
	if (old.count) {
		sort_vec(&old, compare);
		drop_known(&new, &old);
	}
	return new.count ? write_lines(&new, path, error) : 0;
}
