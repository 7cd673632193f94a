#include "host/module_files.h"

#include <libkmod.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/kernel_file.h"

/* libkmod's own context: nothing else is needed. */
struct module_files {
	struct kmod_ctx *context;
};

/* What libkmod misses is no news to users. */
static void keep_quiet(void *data, int priority, const char *file, int line, const char *function,
		       const char *format, va_list args)
{
}

struct module_files *module_files_open(const struct roots *roots)
{
	const char *const no_config[] = { NULL };
	char release[128], path[PATH_MAX];
	struct module_files *files;

	if (!roots->modules ||
	    kernel_file_read(release, sizeof(release), "%s/sys/kernel/osrelease", roots->proc) <= 0)
		return NULL;
	files = malloc(sizeof(*files));
	if (!files)
		return NULL;
	(void)snprintf(path, sizeof(path), "%s/%s", roots->modules, release);
	files->context = kmod_new(path, no_config);
	if (!files->context) {
		free(files);
		return NULL;
	}
	kmod_set_log_fn(files->context, keep_quiet, NULL);
	return files;
}

void module_files_close(struct module_files *files)
{
	if (!files)
		return;
	(void)kmod_unref(files->context);
	free(files);
}

void module_files_name(struct module_files *files, const char *name, char ret[PATH_MAX])
{
	struct kmod_module *module = NULL;
	const char *path = NULL;

	if (files && !kmod_module_new_from_name(files->context, name, &module))
		path = kmod_module_get_path(module);
	if (path && strlen(path) < PATH_MAX)
		(void)strcpy(ret, path);
	else
		(void)snprintf(ret, PATH_MAX, "[%s]", name);
	(void)kmod_module_unref(module);
}
