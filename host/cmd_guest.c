#include "host/cmd_guest.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "decode/base/options.h"
#include "guest/channel.h"
#include "guest/channel_mount.h"
#include "guest/channel_ssh.h"
#include "guest/guest_copy.h"
#include "guest/output_directory.h"
#include "host/domain.h"
#include "host/guest_agent.h"

struct guest_args {
	const char *domain, *via, *uri, *output;
};

/* What the agent is reached by. */
struct agent_context {
	struct domain_link *link;
	struct domain domain;
	struct guest_agent agent;
};

static int parse_options(struct guest_args *args, int argc, char **argv, struct ptvm_error *error)
{
	const struct option_row rows[] = {
		{ 0, "domain", OPT_STRING, &args->domain, "NAME",
		  "the guest: a libvirt domain by name, UUID or id" },
		{ 0, "via", OPT_STRING, &args->via, "WAY",
		  "how its files are read: agent (the default), ssh=[USER@]HOST or mount=DIR" },
		{ 'c', "connect", OPT_STRING, &args->uri, "URI",
		  "libvirt to talk to (default: $LIBVIRT_DEFAULT_URI, then qemu:///system)" },
		{ 'o', "output", OPT_STRING, &args->output, "DIR",
		  "directory to make (default: ptvm.guest)" },
		{ 0 },
	};
	const struct options options = {
		.usage = "ptvm guest --domain NAME|--via WAY [OPTION]...",
		.summary = "Copy the code and symbols of a guest's kernel, so that its trace can "
			   "be decoded.",
		.rows = rows,
	};
	int left = options_parse(&options, argc, argv, stdout, error);

	if (left < 0)
		return left;
	if (left > 0)
		return ptvm_fail(error, PTVM_BAD_USAGE, "unexpected argument '%s'", argv[1]);
	if (!args->domain && !strcmp(args->via, "agent"))
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "which guest? name it with --domain, or a way to it with --via");
	return 0;
}

static int reach_agent(const struct guest_args *args, struct agent_context *context,
		       struct channel **ret, struct ptvm_error *error)
{
	int r = domain_link_open(args->uri, false, &context->link, error);

	if (!r)
		r = domain_find(context->link, args->domain, &context->domain, error);
	if (r)
		return r;
	if (!context->domain.is_running)
		return ptvm_fail(error, PTVM_NOT_FOUND, "domain '%s' is %s", context->domain.name,
				 context->domain.state);
	context->agent = (struct guest_agent){ context->link, context->domain.uuid };
	return guest_agent_channel(&context->agent, ret);
}

static int reach(const struct guest_args *args, struct agent_context *context, struct channel **ret,
		 struct ptvm_error *error)
{
	if (!strcmp(args->via, "agent"))
		return reach_agent(args, context, ret, error);
	if (!strncmp(args->via, "ssh=", 4))
		return channel_ssh_new(args->via + 4, ret, error);
	if (!strncmp(args->via, "mount=", 6))
		return channel_mount_new(args->via + 6, ret, error);
	return ptvm_fail(error, PTVM_BAD_USAGE,
			 "--via takes agent, ssh=[USER@]HOST or mount=DIR, not '%s'", args->via);
}

static double seconds(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void show_progress(const struct guest_copy *copy, double begin)
{
	if (!isatty(STDERR_FILENO))
		return;
	(void)fprintf(stderr, "\r%s: %.1f", copy->doing, mib(copy->done));
	if (copy->total)
		(void)fprintf(stderr, " of %.1f", mib(copy->total));
	(void)fprintf(stderr, " MiB, %.1f s \033[K", seconds() - begin);
}

static void end_progress(void)
{
	if (isatty(STDERR_FILENO))
		(void)fputs("\r\033[K", stderr);
}

/* Signals that would end us are kept until a step is done, so that nothing is left behind in the
 * guest or here. */
static void hold_signals(sigset_t *ret)
{
	(void)sigemptyset(ret);
	(void)sigaddset(ret, SIGINT);
	(void)sigaddset(ret, SIGTERM);
	(void)sigaddset(ret, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, ret, NULL);
}

static int copy_all(struct guest_copy *copy, double begin, struct ptvm_error *error)
{
	const struct timespec at_once = { 0 };
	sigset_t ending;
	int r;

	hold_signals(&ending);
	do {
		show_progress(copy, begin);
		r = guest_copy_next(copy, error);
		if (r >= 0 && sigtimedwait(&ending, NULL, &at_once) > 0)
			r = ptvm_fail(error, PTVM_SYSTEM, "interrupted");
	} while (r > 0);
	end_progress();
	return r;
}

static void print_result(const struct guest_copy *copy, const char *path, double took)
{
	(void)printf("%s: kernel %s, %.1f MiB of code and %.1f MiB of symbols, %zu modules, by %s "
		     "in %.1f s\n",
		     path, copy->facts.release.from ? copy->facts.release.value : "(no release)",
		     mib(copy->code.total), mib(copy->kallsyms_bytes), copy->modules.count,
		     copy->channel->way->name, took);
}

static int copy_guest(const struct guest_args *args, struct channel *channel, const char *domain,
		      struct ptvm_error *error)
{
	struct output_directory directory;
	struct guest_copy copy;
	double begin = seconds();
	int r;

	r = output_directory_make(args->output, &directory, error);
	if (r)
		return r;
	guest_copy_init(&copy, channel, &directory, domain);
	r = copy_all(&copy, begin, error);
	if (!r)
		r = output_directory_keep(&directory, error);
	if (!r)
		print_result(&copy, directory.path, seconds() - begin);
	guest_copy_free(&copy);
	output_directory_drop(&directory);
	return r;
}

int cmd_guest(int argc, char **argv, struct ptvm_error *error)
{
	struct guest_args args = { .via = "agent", .output = "ptvm.guest" };
	struct agent_context context = { 0 };
	struct channel *channel = NULL;
	int r;

	r = parse_options(&args, argc, argv, error);
	if (!r)
		r = reach(&args, &context, &channel, error);
	if (!r)
		r = copy_guest(&args, channel, context.link ? context.domain.name : args.domain,
			       error);
	channel_free(channel);
	domain_link_close(context.link);
	return r;
}
