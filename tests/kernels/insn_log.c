/* A plugin of QEMU (TCG plugins, version 1 of their interface) that logs what the kernel of a guest
 * executes. Its argument `log=PREFIX` says where. See insn_log.h. */
#include "tests/kernels/insn_log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* QEMU's side: its header is in no package of Debian 12 (docs/devel/tcg-plugins.rst). */
struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*cb)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned vcpu, void *context), int flags,
					    void *context);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*cb)(uint64_t id, void *context),
				    void *context);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))
EXPORT extern const int qemu_plugin_version;
EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);
const int qemu_plugin_version = 1;

enum {
	VCPUS = 8,
	STEPS = 1 << 16,
	STEPS_PER_TIME = 256,
	POLL_US = 10000,
	FLUSHES_MAX = 1 << 13 /* 2 GiB of log: the guest does not come to an end */
};

/* The steps of a vCPU that are not written yet: of its thread alone. */
struct log {
	FILE *file;
	uint32_t steps[STEPS];
	size_t count;
	unsigned flushes, since_time;
	bool in_user;
};

static struct log logs[VCPUS];
static const char *prefix;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the following two */
static FILE *insns;
static uint32_t insn_count;
static atomic_bool is_on;
static uint64_t begun; /* ns */

static void fail(const char *what)
{
	perror(what);
	abort();
}

/* A file of the log, to be freed: PREFIX.KIND-NUMBER. */
static char *name_of(const char *kind, unsigned number)
{
	char *name;

	if (asprintf(&name, "%s.%s-%u", prefix, kind, number) < 0)
		fail("asprintf");
	return name;
}

static FILE *create(const char *kind, unsigned number)
{
	char *name = name_of(kind, number);
	FILE *file = fopen(name, "w");

	if (!file)
		fail(name);
	free(name);
	return file;
}

static void flush(struct log *log)
{
	if (log->count &&
	    fwrite(log->steps, sizeof(*log->steps), log->count, log->file) != log->count)
		fail("log");
	if (++log->flushes > FLUSHES_MAX) {
		(void)fprintf(stderr, "insn_log: the guest runs on and on\n");
		abort();
	}
	log->count = 0;
}

static void add(struct log *log, uint32_t step)
{
	log->steps[log->count++] = step;
	if (log->count == STEPS)
		flush(log);
}

static uint64_t now_ns(void)
{
	enum { NS_PER_S = 1000000000 };
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void add_time(struct log *log)
{
	uint64_t time = now_ns() - begun;

	add(log, LOG_TIME);
	add(log, (uint32_t)time);
	add(log, (uint32_t)(time >> 32));
	log->since_time = 0;
}

static struct log *log_of(unsigned vcpu)
{
	struct log *log = &logs[vcpu];

	if (vcpu >= VCPUS)
		abort();
	if (!log->file) {
		log->file = create("steps", vcpu);
		add_time(log);
	}
	return log;
}

static void log_kernel(unsigned vcpu, void *context)
{
	struct log *log;

	if (!is_on)
		return;
	log = log_of(vcpu);
	if (log->in_user || log->since_time++ == STEPS_PER_TIME)
		add_time(log);
	log->in_user = false;
	add(log, (uint32_t)(uintptr_t)context);
}

static void log_user(unsigned vcpu, void *context)
{
	struct log *log;

	if (!is_on)
		return;
	log = log_of(vcpu);
	if (!log->in_user)
		add(log, LOG_USER);
	log->in_user = true;
}

/* Meanwhile somebody copies the guest's kernel. */
static void wait_for(unsigned number)
{
	char *name = name_of("go", number);

	(void)fclose(create("at", number));
	while (access(name, F_OK))
		usleep(POLL_US);
	free(name);
}

static void take_mark(unsigned vcpu, void *context)
{
	unsigned number = (unsigned)(uintptr_t)context;

	if (number == LOG_ON)
		begun = now_ns();
	if (number >= LOG_WAIT)
		wait_for(number);
	else
		is_on = number == LOG_ON;
}

static bool is_mark(const struct log_insn *insn, unsigned *number)
{
	static const uint8_t nopl[] = { 0x0f, 0x1f, 0x80 };
	uint32_t value;

	memcpy(&value, insn->bytes + sizeof(nopl), sizeof(value));
	*number = value & 0xffff;
	return insn->size == sizeof(nopl) + sizeof(value) &&
	       !memcmp(insn->bytes, nopl, sizeof(nopl)) && (value & ~0xffffU) == LOG_MARK;
}

static uint32_t add_insn(const struct log_insn *insn)
{
	uint32_t number;

	pthread_mutex_lock(&lock);
	if (fwrite(insn, sizeof(*insn), 1, insns) != 1)
		fail("insns");
	number = ++insn_count;
	pthread_mutex_unlock(&lock);
	return number;
}

static void translate(struct qemu_plugin_insn *from)
{
	struct log_insn insn = { .ip = qemu_plugin_insn_vaddr(from),
				 .size = (uint8_t)qemu_plugin_insn_size(from) };
	void (*cb)(unsigned, void *) = log_user;
	uintptr_t number = 0;
	unsigned mark;

	memcpy(insn.bytes, qemu_plugin_insn_data(from), insn.size);
	if (insn.ip >> 63) {
		number = add_insn(&insn);
		cb = log_kernel;
	} else if (is_mark(&insn, &mark)) {
		number = mark;
		cb = take_mark;
	}
	qemu_plugin_register_vcpu_insn_exec_cb(from, cb, 0, (void *)number);
}

static void translate_all(uint64_t id, struct qemu_plugin_tb *tb)
{
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
		translate(qemu_plugin_tb_get_insn(tb, i));
}

static void finish(uint64_t id, void *context)
{
	is_on = false;
	for (unsigned i = 0; i < VCPUS; i++) {
		if (!logs[i].file)
			continue;
		flush(&logs[i]);
		if (fclose(logs[i].file))
			fail("log");
	}
	if (fclose(insns))
		fail("insns");
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "log=", 4)) {
		(void)fprintf(stderr, "insn_log: log=PREFIX is needed\n");
		return -1;
	}
	prefix = strdup(argv[0] + 4);
	if (!prefix)
		return -1;
	insns = create("insns", 0);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate_all);
	qemu_plugin_register_atexit_cb(id, finish, NULL);
	return 0;
}
