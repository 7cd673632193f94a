/* record_fake FROM STEP patient|lossy KILL OPTION...: `ptvm record` with these options on a fake
 * machine that replays the recording FROM, STEP records at a time. A lossy machine does not wait
 * for the recorder. The recorder is killed in the middle of write number KILL (0: never). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "host/record/record.h"
#include "host/record/record_options.h"
#include "tests/fake_machine.h"

/* The linker puts these in place of the calls, which have such names where files can be large. */
ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t at);
ssize_t __real_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t at);
ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);

enum { MIN_ARGUMENTS = 5 };

static unsigned kill_at, writes;

static bool is_last(void)
{
	return __atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED) == kill_at;
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t at)
{
	if (is_last()) {
		(void)!__real_pwrite64(fd, data, size / 2, at);
		(void)kill(getpid(), SIGKILL);
	}
	return __real_pwrite64(fd, data, size, at);
}

ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at)
{
	size_t size = 0, done;

	if (!is_last())
		return __real_pwritev64(fd, pieces, count, at);
	for (int i = 0; i < count; i++)
		size += pieces[i].iov_len;
	for (size_t left = size / 2; left; left -= done, at += (off_t)done, pieces++) {
		done = left < pieces->iov_len ? left : pieces->iov_len;
		(void)!__real_pwrite64(fd, pieces->iov_base, done, at);
	}
	return kill(getpid(), SIGKILL);
}

static int record_on(struct fake_machine *machine, int argc, char **argv, struct ptvm_error *error)
{
	static struct fake_tree tree;
	struct record_options options;
	static char verb[] = "record";
	int r = fake_machine_init(machine, argv[1], error);

	if (r)
		return r;
	machine->step = (size_t)atoi(argv[2]);
	machine->is_lossy = !strcmp(argv[3], "lossy");
	machine->signal = SIGINT;
	kill_at = (unsigned)atoi(argv[4]);
	fake_tree_init(&tree);
	fake_past_tree(&machine->past, &tree);
	argc -= MIN_ARGUMENTS - 1;
	argv += MIN_ARGUMENTS - 1;
	argv[0] = verb;
	r = record_options_parse(argc, argv, &options, error);
	if (!r)
		r = record(&tree.roots, &machine->table, &options, argc, argv, error);
	record_options_free(&options);
	fake_tree_deinit(&tree);
	return r;
}

int main(int argc, char **argv)
{
	static struct fake_machine machine;
	struct ptvm_error error = { 0 };
	int r;

	if (argc < MIN_ARGUMENTS)
		return 2;
	r = record_on(&machine, argc, argv, &error);
	if (error.code)
		(void)fprintf(stderr, "record_fake: %s\n", error.message);
	(void)printf("%u writes, %zu events left, %u areas left, %llu stops, %llu records lost\n",
		     writes, fake_machine_open_count(&machine), machine.mapped,
		     (unsigned long long)machine.stops, (unsigned long long)machine.unwritten);
	fake_machine_deinit(&machine);
	return r ? 1 : 0;
}
