/* The first and only program of a traced guest: `scenario=NAME` on the kernel's command line says
 * which of its code the kernel patches while another process keeps the other CPU busy. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kernels/insn_log.h"

#define MARK(number) __asm__ volatile("nopl %c0(%%rax)" ::"i"(LOG_MARK + (number)) : "memory")
#define TRACING "/sys/kernel/tracing/"
#define DISK "/dev/ram0" /* of brd.ko */

enum { ROUNDS = 3, CALLS = 40, PAUSE_US = 10000, TRIES = 20 };

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

/* What a socket of this process passes, and through what. */
static int sockets[2] = { -1, -1 };

/* A bit of many parts of the kernel. */
static void work(void)
{
	char byte = 0;
	int ends[2];

	read_file(DISK);
	for (int i = 0; i < CALLS && sockets[0] >= 0; i++) {
		(void)!write(sockets[0], &byte, 1);
		(void)!read(sockets[1], &byte, 1);
	}
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

static void set_keys(const char *to)
{
	put("/proc/sys/kernel/sched_schedstats", to);
	put(TRACING "events/sched/enable", to);
	put(TRACING "events/irq/enable", to);
}

/* Static keys and static calls. */
static void switch_keys(void)
{
	set_keys("1");
}

static void switch_keys_briefly(void)
{
	set_keys("1");
	work();
	set_keys("0");
}

static void add_probes(void)
{
	put(TRACING "kprobe_events", "p:one vfs_write\nr:two vfs_read\np:three pipe_read\n");
	put(TRACING "events/kprobes/enable", "1");
}

static void add_probes_briefly(void)
{
	add_probes();
	work();
	put(TRACING "events/kprobes/enable", "0");
	put(TRACING "kprobe_events", "");
}

static void trace_functions(void)
{
	put(TRACING "set_ftrace_filter", "vfs_* pipe_* schedule*");
	put(TRACING "current_tracer", "function");
}

static void trace_graph_briefly(void)
{
	put(TRACING "set_ftrace_filter", "vfs_* pipe_* schedule*");
	put(TRACING "current_tracer", "function_graph");
	work();
	put(TRACING "current_tracer", "nop");
}

static void load_module(const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY);

	if (syscall(SYS_finit_module, fd, parameters, 0))
		perror(path);
	close(fd);
}

/* It may be in use on the other CPU. */
static void unload_module(const char *name)
{
	for (int i = 0; i < TRIES && syscall(SYS_delete_module, name, O_NONBLOCK); i++)
		usleep(PAUSE_US / TRIES);
}

static void have_disk(void)
{
	if (mount("dev", "/dev", "devtmpfs", 0, NULL))
		perror("/dev");
	load_module("/brd.ko", "rd_nr=1 rd_size=64");
}

/* One comes to where another was. */
static void replace_modules(void)
{
	unload_module("brd");
	load_module("/loop.ko", "");
	load_module("/brd.ko", "rd_nr=1 rd_size=64");
}

static void open_sockets(void)
{
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets))
		perror("socketpair");
}

/* Takes every packet, and another form of the program each time. */
static int load_filter(int32_t length)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = length },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_0, .off = 1, .imm = 1 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
				.insns = (uintptr_t)insns,
				.insn_cnt = sizeof(insns) / sizeof(*insns),
				.license = (uintptr_t) "GPL" };

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static void attach_filters(void)
{
	for (int32_t length = 1; length <= 2; length++) {
		int fd = load_filter(length);

		if (setsockopt(sockets[1], SOL_SOCKET, SO_ATTACH_BPF, &fd, sizeof(fd)))
			perror("SO_ATTACH_BPF");
		close(fd);
		work();
	}
}

static const struct scenario {
	const char *name;
	void (*prepare)(void); /* before the kernel is copied first */
	void (*change)(void);
} scenarios[] = {
	{ "nothing", nothing, nothing },
	{ "keys", nothing, switch_keys },
	{ "keys-briefly", nothing, switch_keys_briefly },
	{ "probes", nothing, add_probes },
	{ "probes-briefly", nothing, add_probes_briefly },
	{ "ftrace", nothing, trace_functions },
	{ "graph-briefly", nothing, trace_graph_briefly },
	{ "modules", have_disk, replace_modules },
	{ "bpf", open_sockets, attach_filters },
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
	scenario->prepare();
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
