/* The first and only program of a traced guest: `scenario=NAME` on the kernel's command line says
 * which of its code the kernel patches while another process keeps the other CPU busy. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kernels/insn_log.h"

#define MARK(number) __asm__ volatile("nopl %c0(%%rax)" ::"i"(LOG_MARK + (number)) : "memory")
#define TRACING "/sys/kernel/tracing/"

enum { ROUNDS = 3, CALLS = 40, PAUSE_US = 10000 };

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		perror(path);
	if (fd >= 0)
		close(fd);
}

static void read_file(const char *path)
{
	char bytes[1024];
	int fd = open(path, O_RDONLY);

	while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0)
		;
	close(fd);
}

/* A bit of many parts of the kernel. */
static void work(void)
{
	char byte = 0;
	int ends[2];

	for (int i = 0; i < CALLS && !pipe(ends); i++) {
		(void)!write(ends[1], &byte, 1);
		(void)!read(ends[0], &byte, 1);
		close(ends[0]);
		close(ends[1]);
		sched_yield();
		getppid();
	}
	read_file("/proc/self/stat");
	usleep(1000);
	if (!fork())
		_exit(0);
	wait(NULL);
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("sched_setaffinity");
}

static pid_t start_worker(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	run_on(1);
	for (;;) {
		work();
		usleep(PAUSE_US);
	}
}

static void nothing(void)
{
}

/* Static keys and static calls. */
static void switch_keys(void)
{
	put("/proc/sys/kernel/sched_schedstats", "1");
	put(TRACING "events/sched/enable", "1");
	put(TRACING "events/irq/enable", "1");
}

static void add_probes(void)
{
	put(TRACING "kprobe_events", "p:one vfs_write\nr:two vfs_read\np:three pipe_read\n");
	put(TRACING "events/kprobes/enable", "1");
}

static void trace_functions(void)
{
	put(TRACING "set_ftrace_filter", "vfs_* pipe_* schedule*");
	put(TRACING "current_tracer", "function");
}

static const struct scenario {
	const char *name;
	void (*change)(void);
} scenarios[] = {
	{ "nothing", nothing },
	{ "keys", switch_keys },
	{ "probes", add_probes },
	{ "ftrace", trace_functions },
};

static const struct scenario *asked_for(void)
{
	const char *wanted = getenv("scenario");

	for (size_t i = 0; wanted && i < sizeof(scenarios) / sizeof(*scenarios); i++)
		if (!strcmp(scenarios[i].name, wanted))
			return &scenarios[i];
	(void)fprintf(stderr, "scenario=... is none that is known\n");
	exit(1);
}

static void set_up(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL) ||
	    mount("tracefs", TRACING, "tracefs", 0, NULL))
		perror("mount");
	run_on(0);
}

int main(void)
{
	const struct scenario *scenario = asked_for();
	pid_t worker;

	set_up();
	worker = start_worker();
	for (int i = 0; i < ROUNDS; i++)
		work();
	MARK(LOG_WAIT);
	MARK(LOG_ON);
	work();
	scenario->change();
	for (int i = 0; i < ROUNDS; i++)
		work();
	MARK(LOG_OFF);
	MARK(LOG_WAIT + 1);
	kill(worker, SIGKILL);
	sync();
	reboot(RB_AUTOBOOT);
	return 0;
}
