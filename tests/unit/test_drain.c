#include "host/record/drain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/bytes.h"
#include "host/record/recording_out.h"
#include "host/record/tracer.h"
#include "tests/fake_kernel.h"

enum {
	CPUS = 20, /* more than one thread drains */
	FDS_PER_CPU = 100,
	RECORDS = 300, /* of each CPU */
	RECORD_SIZE = 64,
	TRACE_SIZE = 24,
	FILE_HEADER = 104,
	ROUND = 68,
	AUXTRACE = 71,
	MAX_WAITS = 10000,
};

struct bench {
	struct fake_kernel cpus[CPUS];
	int opened[CPUS];
	struct perf_kernel kernel;
	struct tracer_choice choice;
	struct tracer tracer;
	struct recording_out out;
	struct drain drain;
	struct ptvm_error error;
	pthread_mutex_t lock; /* of `time`: there is one clock */
	uint64_t time;
	char path[64];
	uint8_t *file;
	size_t file_size;
};

static struct bench bench;

static int kernel_open(void *context, struct perf_event_attr *attr, pid_t tid, int cpu,
		       int group_fd)
{
	return cpu * FDS_PER_CPU + bench.opened[cpu]++;
}

static int kernel_control(void *context, int fd, unsigned long request, unsigned long argument)
{
	if (request == PERF_EVENT_IOC_ID)
		*(uint64_t *)argument = (uint64_t)fd;
	return 0;
}

static void *kernel_map(void *context, size_t size, int protection, int fd, off_t offset)
{
	struct fake_kernel *cpu = &bench.cpus[fd / FDS_PER_CPU];

	return cpu->table.map(cpu, size, protection, fd, offset);
}

static int kernel_unmap(void *context, void *at, size_t size)
{
	for (int i = 0; i < CPUS; i++)
		if (!bench.cpus[i].table.unmap(&bench.cpus[i], at, size))
			return 0;
	return -1;
}

/* As if `lost` records of each event were dropped. */
static ssize_t kernel_read(void *context, int fd, void *data, size_t size)
{
	const uint64_t counts[] = { 0, 0, bench.cpus[fd / FDS_PER_CPU].lost };

	assert_int_equal(size, sizeof(counts));
	memcpy(data, counts, size);
	return (ssize_t)size;
}

static int kernel_close(void *context, int fd)
{
	return 0;
}

static int kernel_wait(void *context, struct pollfd *fds, size_t count, int ms)
{
	return poll(NULL, 0, 1);
}

static void start(int cpus)
{
	static pid_t whole = -1;
	static const struct pid_list tids = { &whole, 1, 0 };
	static int numbers[CPUS];

	for (int i = 0; i < CPUS; i++)
		numbers[i] = i;
	bench.choice = (struct tracer_choice){
		.tids = &tids,
		.cpus = numbers,
		.cpu_count = (size_t)cpus,
		.record_pages = 1,
		.aux_pages = 1,
	};
	assert_int_equal(tracer_open(&bench.tracer, &bench.kernel, &bench.choice, NULL), 0);
	assert_int_equal(drain_start(&bench.drain, NULL), 0);
}

static int set_up(void **state)
{
	memset(&bench, 0, sizeof(bench));
	for (int i = 0; i < CPUS; i++)
		fake_kernel_init(&bench.cpus[i]);
	bench.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	bench.kernel = (struct perf_kernel){ NULL,         kernel_open,  kernel_control,
					     kernel_map,   kernel_unmap, kernel_read,
					     kernel_close, kernel_wait,  FAKE_PAGE_SIZE };
	bench.drain = (struct drain){ .tracer = &bench.tracer,
				      .out = &bench.out,
				      .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	(void)snprintf(bench.path, sizeof(bench.path), "/tmp/ptvm-drain-%d", getpid());
	return recording_out_create(&bench.out, bench.path, NULL, 0, NULL);
}

static int tear_down(void **state)
{
	drain_free(&bench.drain);
	tracer_close(&bench.tracer);
	for (int i = 0; i < CPUS; i++)
		fake_kernel_deinit(&bench.cpus[i]);
	recording_out_close(&bench.out);
	(void)close(bench.drain.wake_fd);
	free(bench.file);
	return unlink(bench.path);
}

/* CPU `cpu` writes its n-th record and trace; false where there is no room. */
static bool happen(int cpu, uint32_t n)
{
	uint8_t record[RECORD_SIZE] = { 14, [6] = RECORD_SIZE }, trace[TRACE_SIZE];
	bool done;

	(void)pthread_mutex_lock(&bench.lock);
	bench.time++;
	memcpy(record + 8, &bench.time, 8);
	memcpy(record + 16, &cpu, 4);
	memcpy(record + 20, &n, 4);
	memset(trace, (int)n, sizeof(trace));
	done = fake_kernel_record(&bench.cpus[cpu], record, sizeof(record));
	if (done)
		(void)fake_kernel_trace(&bench.cpus[cpu], trace, sizeof(trace));
	(void)pthread_mutex_unlock(&bench.lock);
	return done;
}

/* Those CPUs whose number is odd, or even. */
static void *run_cpus(void *first)
{
	for (uint32_t n = 0; n < RECORDS; n++)
		for (int cpu = *(const int *)first; cpu < CPUS; cpu += 2)
			while (!happen(cpu, n))
				(void)usleep(100);
	return NULL;
}

static void read_file(void)
{
	FILE *file = fopen(bench.path, "rb");

	assert_non_null(file);
	bench.file_size = recording_out_size(&bench.out);
	bench.file = malloc(bench.file_size);
	assert_int_equal(fread(bench.file, 1, bench.file_size, file), bench.file_size);
	(void)fclose(file);
}

/* The part of the file that was checked so far. */
struct seen {
	uint32_t records[CPUS];
	uint64_t trace[CPUS];
	uint64_t newest, newest_at_round[2]; /* before the last round, and before the one before */
	unsigned rounds;
};

static void see_record(struct seen *seen, const uint8_t *data)
{
	const uint64_t time = load_le(data + 8, 8), cpu = load_le(data + 16, 4);

	assert_true(cpu < CPUS);
	assert_int_equal(load_le(data + 20, 4), seen->records[cpu]++);
	assert_true(time >= seen->newest_at_round[1]);
	if (time > seen->newest)
		seen->newest = time;
}

static void see_trace(struct seen *seen, const uint8_t *data)
{
	const uint64_t cpu = load_le(data + 40, 4), size = load_le(data + 8, 8);

	assert_true(cpu < CPUS);
	assert_int_equal(load_le(data + 16, 8), seen->trace[cpu]);
	for (uint64_t i = 0; i < size; i++)
		assert_int_equal(data[48 + i], (uint8_t)((seen->trace[cpu] + i) / TRACE_SIZE));
	seen->trace[cpu] += size;
}

static void see_all(struct seen *seen)
{
	for (size_t at = FILE_HEADER; at < bench.file_size;) {
		const uint8_t *data = bench.file + at;
		const uint32_t type = (uint32_t)load_le(data, 4);

		at += load_le(data + 6, 2);
		if (type == ROUND) {
			seen->rounds++;
			seen->newest_at_round[1] = seen->newest_at_round[0];
			seen->newest_at_round[0] = seen->newest;
		} else if (type == AUXTRACE) {
			see_trace(seen, data);
			at += load_le(data + 8, 8);
		} else {
			see_record(seen, data);
		}
	}
}

static void several_threads_write_all_in_order(void **state)
{
	static const int firsts[] = { 0, 1 };
	static struct seen seen;
	pthread_t threads[2];

	memset(&seen, 0, sizeof(seen));
	start(CPUS);
	assert_int_equal(bench.drain.worker_count, 3);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, run_cpus, (void *)(uintptr_t)&firsts[i]),
			0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(drain_stop(&bench.drain, &bench.error), 0);
	read_file();
	see_all(&seen);
	for (int i = 0; i < CPUS; i++) {
		assert_int_equal(seen.records[i], RECORDS);
		assert_int_equal(seen.trace[i], RECORDS * TRACE_SIZE);
	}
	assert_true(seen.rounds > 0);
}

static void what_comes_before_the_end_is_written(void **state)
{
	start(1);
	assert_true(happen(0, 0));
	assert_int_equal(drain_stop(&bench.drain, NULL), 0);
	assert_int_equal(bench.out.index.count, 1);
	assert_int_equal(drain_stop(&bench.drain, NULL), 0);
	assert_int_equal(drain_start(&bench.drain, NULL), 0);
	assert_true(happen(0, 1));
	assert_int_equal(drain_stop(&bench.drain, NULL), 0);
	assert_int_equal(bench.out.index.count, 2);
}

/* Waits until a thread says that it ended by itself. */
static void wait_for_wake(void)
{
	uint64_t count;
	int waits = 0;

	while (read(bench.drain.wake_fd, &count, sizeof(count)) < 0) {
		assert_true(++waits < MAX_WAITS);
		(void)usleep(1000);
	}
}

static void a_failure_is_told_at_once(void **state)
{
	const int fd = bench.out.fd;

	bench.out.fd = -1;
	start(CPUS);
	assert_true(happen(17, 0));
	wait_for_wake();
	assert_int_equal(drain_stop(&bench.drain, &bench.error), -PTVM_SYSTEM);
	assert_non_null(strstr(bench.error.message, "cannot write the recording"));
	bench.out.fd = fd;
}

static void so_is_the_limit(void **state)
{
	bench.drain.max_size = FILE_HEADER + 2 * RECORD_SIZE;
	start(2);
	assert_true(happen(0, 0));
	wait_for_wake();
	assert_int_equal(drain_stop(&bench.drain, &bench.error), -PTVM_END);
}

static void losses_of_all_rings_are_added(void **state)
{
	uint8_t lost[56] = { 2, [6] = 56, [16] = 3 };
	struct trace_loss loss = { 0 };

	start(CPUS);
	for (uint8_t i = 0; i < 2; i++) {
		lost[24 + 4] = (uint8_t)(i + 1);
		(void)fake_kernel_record(&bench.cpus[i * 10], lost, sizeof(lost));
	}
	assert_int_equal(drain_stop(&bench.drain, NULL), 0);
	assert_int_equal(drain_losses(&bench.drain, &loss), 0);
	assert_int_equal(loss.threads.count, 2);
	assert_int_equal(loss.threads.items[1].tid, 2);
	assert_int_equal(loss.threads.items[1].records, 3);
	trace_loss_free(&loss);
}

static void so_are_those_that_nobody_came_after(void **state)
{
	uint8_t lost[56] = { 2, [6] = 56, [16] = 3, [24 + 4] = 5 };
	struct trace_loss loss = { 0 };

	start(2);
	bench.cpus[1].lost = 2;
	(void)fake_kernel_record(&bench.cpus[1], lost, sizeof(lost));
	assert_int_equal(drain_stop(&bench.drain, NULL), 0);
	assert_int_equal(drain_losses(&bench.drain, &loss), 0);
	assert_int_equal(loss.threads.count, 2);
	assert_int_equal(loss.threads.items[0].records, 3);
	assert_int_equal(loss.threads.items[1].tid, -1);
	assert_int_equal(loss.threads.items[1].records,
			 2 * bench.tracer.rings.items[1].events.count - 3);
	trace_loss_free(&loss);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(several_threads_write_all_in_order),
		TEST(what_comes_before_the_end_is_written),
		TEST(a_failure_is_told_at_once),
		TEST(so_is_the_limit),
		TEST(losses_of_all_rings_are_added),
		TEST(so_are_those_that_nobody_came_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
