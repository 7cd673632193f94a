#include "host/machine/module_files.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "host/machine/kernel_file.h"
#include "host/machine/kmod_calls.h"

struct module_files {
	struct kmod_calls kmod;
	struct kmod_ctx *context;
};

/* libkmod complains of files that are not needed here. */
static void keep_quiet(void *data, int priority, const char *file, int line, const char *function,
		       const char *format, va_list args)
{
}

/* Begin with the index in a directory of modules. */
static int open_index(struct module_files *files, const char *directory)
{
	const char *const no_config[] = { NULL };
	int r = kmod_calls_load(&files->kmod);

	if (r)
		return r;
	files->context = files->kmod.kmod_new(directory, no_config);
	if (!files->context)
		return -PTVM_NO_MEMORY;
	files->kmod.kmod_set_log_fn(files->context, keep_quiet, NULL);
	return 0;
}

struct module_files *module_files_open(const struct roots *roots)
{
	char release[128], path[PATH_MAX];
	struct module_files *files;

	if (!roots->modules ||
	    kernel_file_read(release, sizeof(release), "%s/sys/kernel/osrelease", roots->proc) <= 0)
		return NULL;
	files = calloc(1, sizeof(*files));
	if (!files)
		return NULL;
	(void)snprintf(path, sizeof(path), "%s/%s", roots->modules, release);
	if (!open_index(files, path))
		return files;
	module_files_close(files);
	return NULL;
}

void module_files_close(struct module_files *files)
{
	if (!files)
		return;
	if (files->context)
		(void)files->kmod.kmod_unref(files->context);
	kmod_calls_unload(&files->kmod);
	free(files);
}

/* The path of a module's file, in the memory of `module`; NULL where it is not known. */
static const char *path_of(struct module_files *files, const char *name,
			   struct kmod_module **ret_module)
{
	if (files->kmod.kmod_module_new_from_name(files->context, name, ret_module))
		return NULL;
	return files->kmod.kmod_module_get_path(*ret_module);
}

void module_files_name(struct module_files *files, const char *name, char ret[PATH_MAX])
{
	struct kmod_module *module = NULL;
	const char *path = files ? path_of(files, name, &module) : NULL;

	if (path && strlen(path) < PATH_MAX)
		(void)strcpy(ret, path);
	else
		(void)snprintf(ret, PATH_MAX, "[%s]", name);
	if (module)
		(void)files->kmod.kmod_module_unref(module);
}
