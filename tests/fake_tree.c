#include "tests/fake_tree.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/vec.h"

static int drop(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	return remove(path);
}

/* A test that fails, or a fuzz target that is killed, leaves its tree: one with a dead PID. */
static void drop_left_behind(const char *where)
{
	DIR *directory = opendir(where);
	const struct dirent *entry;
	char path[PATH_MAX];
	int pid;

	assert_non_null(directory);
	while ((entry = readdir(directory))) {
		if (sscanf(entry->d_name, "ptvm-tree-%d-", &pid) != 1 || pid <= 0 ||
		    !kill(pid, 0) || errno != ESRCH)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", where, entry->d_name);
		(void)nftw(path, drop, 16, FTW_DEPTH | FTW_PHYS);
	}
	(void)closedir(directory);
}

void fake_tree_init(struct fake_tree *tree)
{
	static bool is_clean;
	const char *where = getenv("TMPDIR");

	memset(tree, 0, sizeof(*tree));
	where = where ? where : "/tmp";
	if (!is_clean)
		drop_left_behind(where);
	is_clean = true;
	assert_in_range(snprintf(tree->path, sizeof(tree->path), "%s/ptvm-tree-%d-XXXXXX", where,
				 (int)getpid()),
			1, sizeof(tree->path) - 1);
	assert_non_null(mkdtemp(tree->path));
	(void)snprintf(tree->proc, sizeof(tree->proc), "%s/proc", tree->path);
	(void)snprintf(tree->sys, sizeof(tree->sys), "%s/sys", tree->path);
	(void)snprintf(tree->debugfs, sizeof(tree->debugfs), "%s/debugfs", tree->path);
	(void)snprintf(tree->dev, sizeof(tree->dev), "%s/dev", tree->path);
	(void)snprintf(tree->modules, sizeof(tree->modules), "%s/lib/modules", tree->path);
	tree->roots =
		(struct roots){ tree->proc, tree->sys, tree->debugfs, tree->dev, tree->modules };
}

void fake_tree_deinit(struct fake_tree *tree)
{
	assert_int_equal(nftw(tree->path, drop, 16, FTW_DEPTH | FTW_PHYS), 0);
	for (size_t i = 0; i < tree->paths.count; i++)
		free(tree->paths.items[i]);
	vec_free(&tree->paths);
}

static void make_directories(const struct fake_tree *tree, char *path)
{
	for (char *c = path + strlen(tree->path) + 1; (c = strchr(c, '/')); c++) {
		*c = 0;
		(void)mkdir(path, 0700);
		*c = '/';
	}
}

static void write_file(const struct fake_tree *tree, char *path, const void *data, size_t size)
{
	FILE *file;

	make_directories(tree, path);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void make_path(const struct fake_tree *tree, char *path, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

static void make_path(const struct fake_tree *tree, char *path, const char *format, va_list args)
{
	int used = snprintf(path, PATH_MAX, "%s/", tree->path);

	(void)vsnprintf(path + used, PATH_MAX - (size_t)used, format, args);
}

void fake_tree_file(const struct fake_tree *tree, const char *text, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	make_path(tree, path, format, args);
	va_end(args);
	write_file(tree, path, text, strlen(text));
}

void fake_tree_bytes(const struct fake_tree *tree, const void *data, size_t size, const char *path)
{
	char whole[PATH_MAX];

	(void)snprintf(whole, sizeof(whole), "%s/%s", tree->path, path);
	write_file(tree, whole, data, size);
}

const char *fake_tree_path(struct fake_tree *tree, const char *name)
{
	char *path = NULL;

	assert_true(asprintf(&path, "%s/%s", tree->path, name) > 0);
	assert_true(vec_push(&tree->paths, path));
	return path;
}

void fake_tree_link(const struct fake_tree *tree, const char *target, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	make_path(tree, path, format, args);
	va_end(args);
	make_directories(tree, path);
	assert_int_equal(symlink(target, path), 0);
}

void fake_tree_process(const struct fake_tree *tree, int pid, const char *comm,
		       const char *arguments, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "proc/%d/cmdline", pid);
	fake_tree_bytes(tree, arguments, size, path);
	fake_tree_file(tree, comm, "proc/%d/comm", pid);
	fake_tree_thread(tree, pid, pid, comm);
}

void fake_tree_thread(const struct fake_tree *tree, int pid, int tid, const char *comm)
{
	fake_tree_file(tree, comm, "proc/%d/task/%d/comm", pid, tid);
}

void fake_tree_thread_ends(const struct fake_tree *tree, int pid, int tid)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/%d/task/%d/comm", tree->proc, pid, tid);
	assert_int_equal(unlink(path), 0);
	*strrchr(path, '/') = 0;
	assert_int_equal(rmdir(path), 0);
}
