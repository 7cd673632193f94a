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
#include "guest/guest_copy.h"
#include "guest/output_directory.h"
#include "guest/output_owner.h"
#include "host/guest_way.h"

struct guest_args {
	const char *domain, *via, *uri, *output;
};

/* A longer list of ways is not meant. */
enum { WAY_BYTES = 4096 };

/* Take the first of a list's words, which commas part; empty where it is too long. */
static void take_way(const char **list, char word[WAY_BYTES])
{
	size_t length = strcspn(*list, ",");

	(void)snprintf(word, WAY_BYTES, "%.*s", length < WAY_BYTES ? (int)length : 0, *list);
	*list += length + ((*list)[length] == ',');
}

static int check_ways(const struct guest_args *args, struct ptvm_error *error)
{
	const char *list = args->via;
	char via[WAY_BYTES];

	do {
		take_way(&list, via);
		if (!guest_way_is_known(via))
			return ptvm_fail(error, PTVM_BAD_USAGE,
					 "--via takes agent, ssh=[USER@]HOST, mount=DIR or memory, "
					 "not '%s'",
					 via);
		if (!args->domain && guest_way_needs_domain(via))
			return ptvm_fail(error, PTVM_BAD_USAGE,
					 "which guest? name it with --domain, or a way to it with "
					 "--via");
	} while (*list);
	return 0;
}

static int parse_options(struct guest_args *args, int argc, char **argv, struct ptvm_error *error)
{
	const struct option_row rows[] = {
		{ 0, "domain", OPT_STRING, &args->domain, "NAME",
		  "the guest: a libvirt domain by name, UUID or id" },
		{ 0, "via", OPT_STRING, &args->via, "WAY[,WAY]...",
		  "how its files are read: agent (the default), ssh=[USER@]HOST, mount=DIR or "
		  "memory" },
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
	return check_ways(args, error);
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

/* Returns 0, -PTVM_END when it was interrupted, or an error. */
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
			r = -PTVM_END;
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
		r = output_owner_give(directory.work, error);
	if (!r)
		r = output_directory_keep(&directory, error);
	if (!r)
		print_result(&copy, directory.path, seconds() - begin);
	guest_copy_free(&copy);
	output_directory_drop(&directory);
	return r;
}

static int copy_by(const char *via, const struct guest_args *args, struct ptvm_error *error)
{
	struct guest_way way;
	int r;

	if (guest_way_asks_monitor(via))
		(void)fprintf(stderr,
			      "ptvm guest: this asks QEMU's monitor for registers and where memory "
			      "is; libvirt notes it and calls the domain tainted\n");
	r = guest_way_open(via, args->uri, args->domain, &way, error);
	if (!r)
		r = copy_guest(args, way.channel, way.link ? way.domain.name : args->domain, error);
	guest_way_close(&way);
	return r;
}

/* Try one way after the other; what the last one says is what ptvm says. */
static int copy_by_any(const struct guest_args *args, struct ptvm_error *error)
{
	const char *list = args->via;
	struct ptvm_error why;
	char via[WAY_BYTES];
	int r;

	do {
		take_way(&list, via);
		why = (struct ptvm_error){ 0 };
		r = copy_by(via, args, &why);
		if (!r)
			return 0;
		if (r == -PTVM_END)
			return ptvm_fail(error, PTVM_SYSTEM, "interrupted");
		if (*list)
			(void)fprintf(stderr, "ptvm guest: by %s: %s\n", via,
				      why.code ? why.message : "out of memory");
	} while (*list);
	return why.code ? ptvm_fail(error, why.code, "%s", why.message) : r;
}

int cmd_guest(int argc, char **argv, struct ptvm_error *error)
{
	struct guest_args args = { .via = "agent", .output = "ptvm.guest" };
	int r = parse_options(&args, argc, argv, error);

	return r ? r : copy_by_any(&args, error);
}
