#include "host/record/recording_kernels.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/channel.h"
#include "guest/channel_mount.h"
#include "host/machine/roots.h"
#include "host/record/copy_loop.h"
#include "host/record/record_options.h"
#include "host/record/record_targets.h"

static const char verb[] = "record";

/* A copy in progress. */
struct copying {
	struct recorded_kernel *kernel;
	const char *recording;
};

static const char *name_of(const struct recorded_kernel *kernel)
{
	if (!kernel->machine)
		return "the host";
	return kernel->machine->name[0] ? kernel->machine->name : "the guest";
}

static pid_t pid_of(const struct recorded_kernel *kernel)
{
	return kernel->machine ? kernel->machine->vm.pid : 0;
}

static int next(void *context, struct ptvm_error *error)
{
	return kernel_copy_next(context, error);
}

static int copy_through(const struct copying *copying, struct channel *channel,
			struct ptvm_error *error)
{
	struct recorded_kernel *kernel = copying->kernel;
	int r = kernel->is_copied
			? kernel_copy_again(&kernel->copy, channel, error)
			: kernel_copy_begin(&kernel->copy, channel, copying->recording,
					    pid_of(kernel),
					    kernel->machine ? kernel->machine->name : NULL, error);

	if (!r)
		r = copy_loop_run(&kernel->copy.copy, next, &kernel->copy, error);
	kernel_copy_abandon(&kernel->copy);
	return r;
}

static int copy_by_way(void *context, struct guest_way *way, struct ptvm_error *error)
{
	return copy_through(context, way->channel, error);
}

/* The host is mounted at the directory that has its /proc. */
static int copy_host(const struct roots *roots, const struct copying *copying,
		     struct ptvm_error *error)
{
	char root[PATH_MAX];
	struct channel *channel;
	int r;

	(void)snprintf(root, sizeof(root), "%s", roots->proc);
	r = channel_mount_new(dirname(root), &channel, error);
	if (r)
		return r;
	r = copy_through(copying, channel, error);
	channel_free(channel);
	return r;
}

/* NULL: there is none, or none is wanted. */
static const char *ways_to(const struct record_options *options,
			   const struct trace_machine *machine)
{
	if (options->via)
		return strcmp(options->via, "none") ? options->via : NULL;
	return machine->uuid[0] ? "agent" : NULL;
}

static int copy_guest(const struct record_options *options, const struct copying *copying,
		      struct ptvm_error *error)
{
	const struct trace_machine *machine = copying->kernel->machine;
	const struct copy_ways ways = { .verb = verb,
					.list = ways_to(options, machine),
					.target = { options->uri, machine->uuid, machine->vm.pid },
					.is_again = copying->kernel->is_copied };

	if (!ways.list)
		return ptvm_fail(error, PTVM_NOT_FOUND, "%s",
				 options->via ? "--via none"
					      : "no way to it was named, as --via memory");
	return copy_loop_by_ways(&ways, copy_by_way, (void *)(uintptr_t)copying, error);
}

/* Copy a kernel, for the first time or again; where that fails, kernel->why says so. */
static int copy_kernel(const struct roots *roots, const struct record_options *options,
		       const struct copying *copying)
{
	struct recorded_kernel *kernel = copying->kernel;
	struct ptvm_error error = { 0 };
	int r = kernel->machine ? copy_guest(options, copying, &error)
				: copy_host(roots, copying, &error);

	if (r)
		(void)snprintf(kernel->why, sizeof(kernel->why), "%s",
			       r == -PTVM_END ? "interrupted" : ptvm_error_text(&error));
	return r;
}

static void warn(const struct recorded_kernel *kernel, const char *what)
{
	(void)fprintf(stderr, "ptvm %s: the kernel of %s was not copied%s: %s\n", verb,
		      name_of(kernel), what, kernel->why);
}

/* Does a kernel that is not copied end the recording? */
static bool is_demanded(const struct record_options *options, const struct recorded_kernel *kernel,
			int r)
{
	return r == -PTVM_NO_MEMORY || r == -PTVM_END ||
	       (kernel->machine && options->via && ways_to(options, kernel->machine));
}

static int copy_one(const struct roots *roots, const struct record_options *options,
		    const struct copying *copying, struct ptvm_error *error)
{
	struct recorded_kernel *kernel = copying->kernel;
	int r = copy_kernel(roots, options, copying);

	kernel->is_copied = !r;
	if (r && is_demanded(options, kernel, r))
		return ptvm_fail(error, r == -PTVM_END ? PTVM_SYSTEM : (enum ptvm_err) - r, "%s",
				 kernel->why);
	if (r && (!kernel->machine || !options->via))
		warn(kernel, ""); /* otherwise it was not wanted */
	return 0;
}

int recording_kernels_copy_guests(const struct record_options *options,
				  const struct record_targets *targets, const char *recording,
				  struct recording_kernels *ret, struct ptvm_error *error)
{
	struct copying copying = { .recording = recording };
	int r = 0;

	ret->items = calloc(targets->machines.count + 1, sizeof(*ret->items));
	if (!ret->items)
		return -PTVM_NO_MEMORY;
	ret->count = targets->machines.count + 1;
	for (size_t i = 1; i < ret->count && !r; i++) {
		copying.kernel = &ret->items[i];
		copying.kernel->machine = &targets->machines.items[i - 1];
		r = copy_one(NULL, options, &copying, error);
	}
	return r;
}

int recording_kernels_copy_host(const struct roots *roots, const struct record_options *options,
				const char *recording, struct recording_kernels *kernels,
				struct ptvm_error *error)
{
	const struct copying copying = { &kernels->items[0], recording };

	return copy_one(roots, options, &copying, error);
}

void recording_kernels_copy_again(const struct roots *roots, const struct record_options *options,
				  struct recording_kernels *kernels)
{
	for (size_t i = 0; i < kernels->count; i++) {
		const struct copying copying = { .kernel = &kernels->items[i] };

		if (kernels->items[i].is_copied && copy_kernel(roots, options, &copying))
			warn(&kernels->items[i], " again");
	}
}

void recording_kernels_free(struct recording_kernels *kernels)
{
	for (size_t i = 0; i < kernels->count; i++)
		kernel_copy_free(&kernels->items[i].copy);
	free(kernels->items);
	*kernels = (struct recording_kernels){ 0 };
}
