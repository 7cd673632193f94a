#include "host/vm/vcpu_threads.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/numbered.h"
#include "decode/base/vec.h"
#include "host/machine/kernel_file.h"
#include "host/machine/kvm_debugfs.h"

enum {
	MAX_INDEX = 4095, /* KVM has no more */
	SYSCALL_IOCTL = 16,
	KVM_RUN = 0xae80,
};

/* A search in one process. */
struct search {
	const struct roots *roots;
	pid_t pid;
	struct vcpu_threads *found;
	bool is_out_of_memory;
};

static bool is_our_thread(const struct search *search, int64_t tid)
{
	return tid > 0 && tid <= INT_MAX &&
	       kernel_file_is_readable("%s/%d/task/%d", search->roots->proc, search->pid, (int)tid);
}

static struct vcpu_thread *thread_of(const struct vcpu_threads *threads, unsigned index)
{
	for (size_t i = 0; i < threads->count; i++)
		if (threads->items[i].index == index)
			return &threads->items[i];
	return NULL;
}

/* `way` says that `tid` runs vCPU `number`. */
static void claim(struct search *search, int number, int64_t tid, enum vcpu_way way)
{
	const unsigned index = (unsigned)number;
	struct vcpu_thread *thread = thread_of(search->found, index);

	if (index > MAX_INDEX || !is_our_thread(search, tid))
		return;
	if (!thread)
		search->is_out_of_memory |=
			!vec_push(search->found, (struct vcpu_thread){ index, (pid_t)tid, way, 0 });
	else if (thread->tid == tid)
		thread->ways |= way;
	else
		thread->against |= way;
}

static void debugfs_vcpu(struct search *search, const char *path, int index)
{
	int64_t tid;

	if (!kernel_file_number(&tid, "%s/vcpu%d/pid", path, index))
		claim(search, index, tid, VCPU_BY_DEBUGFS);
}

static void search_debugfs(struct search *search)
{
	char path[PATH_MAX];
	int index;

	for (size_t nth = 0; !kvm_debugfs_find(search->roots, search->pid, nth, path, sizeof(path));
	     nth++) {
		_cleanup_numbered_ struct numbered_files vcpus = numbered_files_open(path, "vcpu");

		while (numbered_files_next(&vcpus, &index))
			debugfs_vcpu(search, path, index);
	}
}

static void cgroup_vcpu(struct search *search, const char *path, int index)
{
	char text[64];

	/* Threads are listed one a line; libvirt puts one into each. */
	if (kernel_file_read(text, sizeof(text), "%s/vcpu%d/cgroup.threads", path, index) < 0 &&
	    kernel_file_read(text, sizeof(text), "%s/vcpu%d/tasks", path, index) < 0)
		return;
	claim(search, index, atoi(text), VCPU_BY_CGROUP);
}

static void search_group(struct search *search, const char *path)
{
	_cleanup_numbered_ struct numbered_files vcpus = numbered_files_open(path, "vcpu");
	int index;

	while (numbered_files_next(&vcpus, &index))
		cgroup_vcpu(search, path, index);
}

/* A line of /proc/PID/cgroup: "0::/path" of version 2, "N:controllers:/path" of version 1. */
static void search_cgroup_line(struct search *search, const char *line)
{
	const char *controllers = strchr(line, ':');
	const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	char path[PATH_MAX];
	int length;

	if (!group || strstr(group, "/.."))
		return;
	controllers++;
	length = snprintf(path, sizeof(path), "%s/fs/cgroup/%.*s%s", search->roots->sys,
			  (int)(group - controllers), controllers, group + 1);
	if (length < 0 || (size_t)length >= sizeof(path))
		return;
	search_group(search, path);
	/* The main thread is in "emulator", beside its vCPUs. */
	*strrchr(path, '/') = 0;
	search_group(search, path);
}

static void search_cgroup(struct search *search)
{
	char text[8192], *line, *rest = text;

	(void)kernel_file_read(text, sizeof(text), "%s/%d/cgroup", search->roots->proc,
			       search->pid);
	while ((line = strsep(&rest, "\n")))
		search_cgroup_line(search, line);
}

/* /proc/PID/task/TID/syscall: number, arguments in hexadecimal; "running" where it is on a CPU. */
static void search_ioctl(struct search *search, int tid)
{
	const char *proc = search->roots->proc;
	char text[256], link[64];
	unsigned number, fd, request;
	int index;

	if (kernel_file_read(text, sizeof(text), "%s/%d/task/%d/syscall", proc, search->pid, tid) <
		    0 ||
	    sscanf(text, "%u %x %x", &number, &fd, &request) != 3 || number != SYSCALL_IOCTL ||
	    request != KVM_RUN)
		return;
	if (kernel_file_link(link, sizeof(link), "%s/%d/fd/%u", proc, search->pid, fd) > 0 &&
	    numbered_read(link, "anon_inode:kvm-vcpu:", &index))
		claim(search, index, tid, VCPU_BY_IOCTL);
}

/* How VMMs name the threads of vCPUs: QEMU (KVM, then emulated), Firecracker, cloud-hypervisor,
 * crosvm, kvmtool. */
static const struct {
	const char *before, *after;
	bool is_emulated;
} patterns[] = {
	{ "CPU ", "/KVM", false }, { "CPU ", "/TCG", true },     { "fc_vcpu ", "", false },
	{ "vcpu", "", false },     { "crosvm_vcpu", "", false }, { "kvm-vcpu-", "", false },
};

static void search_name(struct search *search, int tid)
{
	char comm[64], *after;
	size_t length;
	int index;

	if (kernel_file_read(comm, sizeof(comm), "%s/%d/task/%d/comm", search->roots->proc,
			     search->pid, tid) < 0)
		return;
	search->found->is_emulated |= !strcmp(comm, "ALL CPUs/TCG");
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		length = strlen(patterns[i].after);
		after = comm + strlen(comm) - length;
		if (after < comm || strcmp(after, patterns[i].after))
			continue;
		*after = 0;
		if (numbered_read(comm, patterns[i].before, &index)) {
			claim(search, index, tid, VCPU_BY_NAME);
			search->found->is_emulated |= patterns[i].is_emulated;
			return;
		}
		*after = patterns[i].after[0];
	}
}

static void search_threads(struct search *search,
			   void (*search_thread)(struct search *search, int tid))
{
	char path[PATH_MAX];
	int tid;

	(void)snprintf(path, sizeof(path), "%s/%d/task", search->roots->proc, search->pid);
	_cleanup_numbered_ struct numbered_files tasks = numbered_files_open(path, "");

	while (numbered_files_next(&tasks, &tid))
		search_thread(search, tid);
}

static int by_index(const void *a, const void *b)
{
	const struct vcpu_thread *left = a, *right = b;

	return left->index < right->index ? -1 : left->index > right->index;
}

int vcpu_threads_find(const struct roots *roots, pid_t pid, struct vcpu_threads *ret,
		      struct ptvm_error *error)
{
	struct search search = { roots, pid, ret, false };

	memset(ret, 0, sizeof(*ret));
	if (!kernel_file_is_readable("%s/%d/task", roots->proc, pid))
		return ptvm_fail(error, PTVM_NOT_FOUND, "there is no process %d", pid);
	search_debugfs(&search);
	search_cgroup(&search);
	search_threads(&search, search_ioctl);
	search_threads(&search, search_name);
	if (search.is_out_of_memory) {
		vcpu_threads_free(ret);
		return -PTVM_NO_MEMORY;
	}
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(ret->items[0]), by_index);
	return 0;
}

void vcpu_threads_free(struct vcpu_threads *threads)
{
	vec_free(threads);
}

const char *vcpu_ways_text(unsigned ways, char *text, size_t size)
{
	static const char *const names[] = { "debugfs", "cgroup", "ioctl", "name" };
	size_t used = 0;

	text[0] = 0;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]) && used < size; i++)
		if (ways & 1U << i)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 names[i]);
	return text;
}
