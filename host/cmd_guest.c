#include "host/cmd_guest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/interrupt.h"
#include "decode/base/monotonic.h"
#include "decode/base/options.h"
#include "decode/base/plural.h"
#include "guest/channel.h"
#include "guest/guest_copy.h"
#include "guest/output_directory.h"
#include "guest/output_owner.h"
#include "host/record/copy_loop.h"
#include "host/vm/guest_way.h"
#include "host/vm/vm_process.h"

struct guest_args {
	const char *domain, *via, *uri, *output;
	pid_t pid; /* 0: none is named */
	struct vm_process process;
};

static int parse_options(struct guest_args *args, int argc, char **argv, struct ptvm_error *error)
{
	const struct option_row rows[] = {
		{ 0, "domain", OPT_STRING, &args->domain, "NAME",
		  "the guest: a libvirt domain by name, UUID or id" },
		{ 'p', "pid", OPT_CALL, &args->pid, "PID",
		  "the guest by its process: QEMU, Firecracker, cloud-hypervisor, crosvm",
		  .call = guest_way_read_pid },
		{ 0, "via", OPT_STRING, &args->via, "WAY[,WAY]...",
		  "how its files are read: agent (the default), ssh=[USER@]HOST, mount=DIR or "
		  "memory",
		  .values = "agent ssh= mount= memory" },
		{ 'c', "connect", OPT_STRING, &args->uri, "URI",
		  "libvirt to talk to (default: $LIBVIRT_DEFAULT_URI, then qemu:///system)" },
		{ 'o', "output", OPT_STRING, &args->output, "DIR",
		  "directory to make (default: ptvm.guest)" },
		{ 0 },
	};
	const struct options options = {
		.usage = "ptvm guest --domain NAME|-p PID|--via WAY [OPTION]...",
		.summary = "Copy the code and symbols of a guest's kernel, so that its trace can "
			   "be decoded.",
		.rows = rows,
	};
	int r = options_parse(&options, argc, argv, stdout, error);

	if (!r)
		r = guest_way_check_name(args->domain, args->pid, error);
	return r ? r : guest_way_check(args->via, args->domain || args->pid, error);
}

/* libvirt knows the guest of a process by its UUID. */
static int find_process(struct guest_args *args, struct copy_ways *ways, struct ptvm_error *error)
{
	const struct roots roots = roots_here();
	int r = vm_process_read(&roots, args->pid, &args->process, error);

	args->domain = args->process.name[0] ? args->process.name : NULL;
	ways->target.domain = args->process.uuid;
	return r;
}

static int next_part(void *context, struct ptvm_error *error)
{
	return guest_copy_next(context, error);
}

static void print_result(const struct guest_copy *copy, const char *path, double took)
{
	(void)printf("%s: kernel %s, %.1f MiB of code and %.1f MiB of symbols, %zu module%s, by %s "
		     "in %.1f s\n",
		     path, copy->facts.release.from ? copy->facts.release.value : "(no release)",
		     copy_loop_mib(copy->code.total), copy_loop_mib(copy->kallsyms_bytes),
		     copy->modules.count, plural(copy->modules.count), copy->channel->way->name,
		     took);
}

static int copy_by_way(const struct guest_args *args, const struct guest_way *way,
		       struct ptvm_error *error)
{
	const int64_t begin_ms = monotonic_ms();
	struct output_directory directory;
	struct guest_copy copy;
	int r;

	r = output_directory_make(args->output, &directory, error);
	if (r)
		return r;
	guest_copy_init(&copy, way->channel, &directory,
			way->link ? way->domain.name : args->domain);
	r = copy_loop_run(&copy, next_part, &copy, error);
	if (!r)
		r = output_owner_give(directory.work, error);
	if (!r)
		r = output_directory_keep(&directory, error);
	if (!r)
		print_result(&copy, directory.path, copy_loop_seconds(begin_ms));
	guest_copy_free(&copy);
	output_directory_drop(&directory);
	return r;
}

static int copy_guest(void *context, struct guest_way *way, struct ptvm_error *error)
{
	struct interrupt interrupt;
	int r;

	interrupt_hold(&interrupt);
	r = copy_by_way(context, way, error);
	interrupt_release(&interrupt);
	return r;
}

int cmd_guest(int argc, char **argv, struct ptvm_error *error)
{
	struct guest_args args = { .via = "agent", .output = "ptvm.guest" };
	struct copy_ways ways = { .verb = argv[0] };
	int r = parse_options(&args, argc, argv, error);

	if (r)
		return r;
	ways.list = args.via;
	ways.target = (struct guest_target){ args.uri, args.domain, args.pid };
	r = args.pid ? find_process(&args, &ways, error) : 0;
	if (!r)
		r = copy_loop_by_ways(&ways, copy_guest, &args, error);
	return r == -PTVM_END ? ptvm_fail(error, PTVM_SYSTEM, "interrupted") : r;
}
