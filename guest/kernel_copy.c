#include "guest/kernel_copy.h"

#include <stdio.h>
#include <string.h>

#include "guest/channel.h"
#include "guest/kallsyms_changes.h"

static int begin(struct kernel_copy *kernel, struct channel *channel, const char *path,
		 const char *domain, struct ptvm_error *error)
{
	int r = output_directory_make(path, &kernel->directory, error);

	if (r)
		return r;
	guest_copy_init(&kernel->copy, channel, &kernel->directory, domain);
	kernel->copy.is_bare = true;
	kernel->is_begun = true;
	return 0;
}

/* kcore_dir for the host, kcore_dir__PID for guests: names that perf looks for. */
int kernel_copy_begin(struct kernel_copy *kernel, struct channel *channel, const char *recording,
		      pid_t pid, const char *domain, struct ptvm_error *error)
{
	char suffix[24] = "", *path = kernel->path, *changes = kernel->changes_path;
	char *symbols = kernel->symbols_path;
	const size_t size = sizeof(kernel->path);

	if (pid)
		(void)snprintf(suffix, sizeof(suffix), "__%d", pid);
	if (snprintf(path, size, "%s/kcore_dir%s", recording, suffix) >= (int)size ||
	    snprintf(changes, size, "%s/data.ptvm-kcore%s", recording, suffix) >= (int)size ||
	    snprintf(symbols, size, "%s/data.ptvm-kallsyms%s", recording, suffix) >= (int)size)
		return ptvm_fail(error, PTVM_BAD_USAGE, "the path of the recording is too long");
	return begin(kernel, channel, path, domain, error);
}

int kernel_copy_again(struct kernel_copy *kernel, struct channel *channel, struct ptvm_error *error)
{
	int r = begin(kernel, channel, kernel->path, NULL, error);

	kernel->is_again = kernel->copy.is_again = true;
	return r;
}

void kernel_copy_abandon(struct kernel_copy *kernel)
{
	if (kernel->is_begun)
		guest_copy_free(&kernel->copy);
	output_directory_drop(&kernel->directory);
	kernel->is_begun = false;
}

static int keep_first(struct kernel_copy *kernel, struct ptvm_error *error)
{
	struct guest_copy *copy = &kernel->copy;

	kernel->json = guest_copy_json(copy);
	if (!kernel->json)
		return -PTVM_NO_MEMORY;
	kernel->modules = copy->files;
	memset(&copy->files, 0, sizeof(copy->files));
	(void)snprintf(kernel->release, sizeof(kernel->release), "%s", copy->facts.release.value);
	(void)snprintf(kernel->build_id, sizeof(kernel->build_id), "%s",
		       copy->facts.build_id.value);
	(void)snprintf(kernel->boot_id, sizeof(kernel->boot_id), "%s", copy->facts.boot_id.value);
	kernel->kernel_start = copy->kernel_start;
	kernel->code_bytes = copy->code.total;
	kernel->kallsyms_bytes = copy->kallsyms_bytes;
	return output_directory_keep(&kernel->directory, error);
}

static int note_changes(const struct kernel_copy *kernel)
{
	const struct kcore_changes *changes = &kernel->changes;
	json_t *json =
		json_pack("{s:I, s:I, s:I, s:I}", "changed", (json_int_t)changes->changed, "added",
			  (json_int_t)changes->added, "gone", (json_int_t)changes->gone, "left_out",
			  (json_int_t)changes->left_out);

	return json_object_set_new(kernel->json, "pages_at_end", json) ? -PTVM_NO_MEMORY : 0;
}

/* Whether the second copy is of another boot. A boot has no id until somebody in the guest asks for
 * it, but most kernels are elsewhere each time. */
static bool is_other_boot(const struct kernel_copy *kernel)
{
	const char *now = kernel->copy.facts.boot_id.value;

	return kernel->copy.kernel_start != kernel->kernel_start ||
	       (*kernel->boot_id && *now && strcmp(kernel->boot_id, now) != 0);
}

static int keep_changes(struct kernel_copy *kernel, struct ptvm_error *error)
{
	struct kcore_changes *changes = &kernel->changes;
	int r;

	if (is_other_boot(kernel))
		return ptvm_fail(error, PTVM_INCONSISTENT,
				 "it was booted again meanwhile, and what ran since is unknown");
	r = kcore_changes_write(kernel->path, kernel->directory.work, kernel->changes_path, changes,
				error);
	if (r || !(changes->changed + changes->added))
		kernel->changes_path[0] = '\0';
	if (!r)
		r = kallsyms_changes_write(kernel->path, kernel->directory.work,
					   kernel->symbols_path, error);
	return r ? r : note_changes(kernel);
}

int kernel_copy_next(struct kernel_copy *kernel, struct ptvm_error *error)
{
	int r = guest_copy_next(&kernel->copy, error);

	if (r > 0)
		return r;
	if (!r)
		r = kernel->is_again ? keep_changes(kernel, error) : keep_first(kernel, error);
	kernel_copy_abandon(kernel);
	return r;
}

void kernel_copy_free(struct kernel_copy *kernel)
{
	kernel_copy_abandon(kernel);
	guest_modules_free(&kernel->modules);
	json_decref(kernel->json);
	memset(kernel, 0, sizeof(*kernel));
}
