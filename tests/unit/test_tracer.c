#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/record/recording_out.h"
#include "host/record/trace_loss.h"
#include "host/record/tracer.h"
#include "tests/fake_kernel.h"

enum { CPUS = 2, FDS_PER_CPU = 100, HEADER = 104, DEAD = 13, TRACE_RECORD = 48, AUX_RECORD = 64 };

/* A machine: a kernel for each CPU, told apart by file descriptors. */
struct machine {
	struct fake_kernel cpus[CPUS];
	int opened[CPUS];
	int owner[CPUS * FDS_PER_CPU]; /* where an event writes to; -1 to itself */
	int group[CPUS * FDS_PER_CPU]; /* who leads it */
	int trace_errno, failing_cpu;  /* from that on */
	int filter_errno;
	unsigned switched_on, switched_off, filtered;
};

struct bench {
	struct machine machine;
	struct perf_kernel kernel;
	struct tracer_choice choice;
	struct pid_list tids;
	struct tracer tracer;
	struct trace_loss losses[CPUS];
	struct recording_out out;
	char path[64];
};

static int machine_open(void *context, struct perf_event_attr *attr, pid_t tid, int cpu,
			int group_fd)
{
	struct machine *machine = context;

	if (cpu < 0)
		cpu = tid % CPUS; /* the fake has one ring for each CPU */
	if (tid == DEAD ||
	    (machine->trace_errno && attr->type == 8 && cpu >= machine->failing_cpu)) {
		errno = tid == DEAD ? ESRCH : machine->trace_errno;
		return -1;
	}
	machine->owner[cpu * FDS_PER_CPU + machine->opened[cpu]] = -1;
	(void)machine->cpus[cpu].table.open(&machine->cpus[cpu], attr, tid, cpu, group_fd);
	machine->group[cpu * FDS_PER_CPU + machine->opened[cpu]] = group_fd;
	return cpu * FDS_PER_CPU + machine->opened[cpu]++;
}

static int machine_control(void *context, int fd, unsigned long request, unsigned long argument)
{
	struct machine *machine = context;
	struct fake_kernel *cpu = &machine->cpus[fd / FDS_PER_CPU];
	int r;

	if (request == PERF_EVENT_IOC_SET_FILTER) {
		machine->filtered++;
		errno = machine->filter_errno;
		return errno ? -1 : 0;
	}
	r = cpu->table.control(cpu, fd, request, argument);
	if (request == PERF_EVENT_IOC_SET_OUTPUT)
		machine->owner[fd] = (int)argument;
	else if (request == PERF_EVENT_IOC_ID)
		*(uint64_t *)argument = 1000 + (unsigned)fd;
	machine->switched_on += request == PERF_EVENT_IOC_ENABLE;
	machine->switched_off += request == PERF_EVENT_IOC_DISABLE;
	return r;
}

static void *machine_map(void *context, size_t size, int protection, int fd, off_t offset)
{
	struct machine *machine = context;
	struct fake_kernel *cpu = &machine->cpus[fd / FDS_PER_CPU];

	return cpu->table.map(cpu, size, protection, fd, offset);
}

static int machine_unmap(void *context, void *at, size_t size)
{
	struct machine *machine = context;

	for (int i = 0; i < CPUS; i++)
		if (!machine->cpus[i].table.unmap(&machine->cpus[i], at, size))
			return 0;
	return -1;
}

static int machine_close(void *context, int fd)
{
	struct machine *machine = context;

	return machine->cpus[fd / FDS_PER_CPU].table.close(&machine->cpus[fd / FDS_PER_CPU], fd);
}

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	for (int i = 0; i < CPUS; i++)
		fake_kernel_init(&bench.machine.cpus[i]);
	bench.kernel = (struct perf_kernel){ &bench.machine, machine_open,  machine_control,
					     machine_map,    machine_unmap, NULL,
					     machine_close,  NULL,          FAKE_PAGE_SIZE };
	(void)snprintf(bench.path, sizeof(bench.path), "/tmp/ptvm-tracer-%d", getpid());
	*state = &bench;
	return recording_out_create(&bench.out, bench.path, NULL, 0, NULL);
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	tracer_close(&bench->tracer);
	for (int i = 0; i < CPUS; i++) {
		trace_loss_free(&bench->losses[i]);
		assert_int_equal(bench->machine.cpus[i].mapped, 0);
		assert_int_equal(bench->machine.cpus[i].closed, bench->machine.cpus[i].opened);
		fake_kernel_deinit(&bench->machine.cpus[i]);
	}
	recording_out_close(&bench->out);
	return unlink(bench->path);
}

static int open_tracer(struct bench *bench, const pid_t *tids, size_t count,
		       struct ptvm_error *error)
{
	static const int cpus[] = { 0, 1 };

	bench->choice.perf.pt_type = 8;
	bench->tids = (struct pid_list){ (pid_t *)(uintptr_t)tids, count, 0 };
	bench->choice.tids = &bench->tids;
	bench->choice.cpus = cpus;
	bench->choice.cpu_count = CPUS;
	bench->choice.record_pages = bench->choice.aux_pages = 1;

	return tracer_open(&bench->tracer, &bench->kernel, &bench->choice, error);
}

static void open_two(struct bench *bench)
{
	const pid_t tids[] = { 11, 12 };

	assert_int_equal(open_tracer(bench, tids, 2, NULL), 0);
}

static void each_cpu_has_all_events_in_one_ring(void **state)
{
	static const enum perf_kind kinds[] = { PERF_TRACE,      PERF_TRACE, PERF_SWITCHES,
						PERF_TEXT_POKES, PERF_TASKS, PERF_TASKS };
	static const pid_t tids[] = { 11, 12, -1, -1, 11, 12 };
	struct bench *bench = *state;
	const struct tracer_event *event;

	open_two(bench);
	assert_int_equal(bench->tracer.rings.count, CPUS);
	for (int i = 0; i < 12; i++) {
		event = &bench->tracer.rings.items[i / 6].events.items[i % 6];
		assert_int_equal(event->kind, kinds[i % 6]);
		assert_int_equal(event->tid, tids[i % 6]);
		assert_int_equal(event->cpu, i / 6);
		assert_int_equal(event->id, 1000 + event->fd);
		assert_int_equal(bench->machine.owner[event->fd],
				 i % 6 ? event->fd / FDS_PER_CPU * FDS_PER_CPU : -1);
	}
	assert_int_equal(bench->machine.switched_on, 0);
	assert_int_equal(tracer_switch(&bench->tracer, true, NULL), 0);
	assert_int_equal(bench->machine.switched_on, 4);
}

/* The clock of each thread, or one of its tracepoints, is led by its own trace. */
static void samples_carry_the_trace_of_their_thread(void **state)
{
	static const pid_t tids[] = { 11, 12 };
	static const uint64_t tracepoints[] = { 701, 702 };
	struct bench *bench = *state;
	struct tracer_event *events;

	bench->choice =
		(struct tracer_choice){ .perf.aux_sample_size = 4096, .is_overwrite = true };
	open_two(bench);
	events = bench->tracer.rings.items[1].events.items;
	assert_int_equal(bench->tracer.rings.items[1].events.count, 8);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(events[5 + 2 * i].kind, PERF_SAMPLES);
		assert_int_equal(bench->machine.group[events[5 + 2 * i].fd], events[i].fd);
	}
	tracer_close(&bench->tracer);
	bench->choice = (struct tracer_choice){ .perf.aux_sample_size = 4096,
						.is_overwrite = true,
						.tracepoints = tracepoints,
						.tracepoint_count = 2,
						.sample_tracepoint = 1 };
	assert_int_equal(open_tracer(bench, tids + 1, 1, NULL), 0);
	events = bench->tracer.rings.items[0].events.items;
	assert_int_equal(bench->tracer.rings.items[0].events.count, 6);
	assert_int_equal(bench->machine.group[events[4].fd], -1);
	assert_int_equal(bench->machine.group[events[5].fd], events[0].fd);
	assert_int_equal(bench->machine.cpus[0].attr.aux_sample_size, 4096);
	assert_int_equal(bench->machine.cpus[0].attr.config, 702);
	assert_int_equal(bench->machine.cpus[0].trace_protection, 1);
}

static void threads_that_ended_are_left_out(void **state)
{
	const pid_t tids[] = { DEAD, 12 }, dead[] = { DEAD };
	struct bench *bench = *state;
	struct ptvm_error error = { 0 };

	assert_int_equal(open_tracer(bench, tids, 2, NULL), 0);
	assert_int_equal(bench->tracer.rings.items[0].events.count, 4);
	assert_int_equal(bench->tracer.rings.items[0].events.items[0].tid, 12);
	tracer_close(&bench->tracer);
	assert_int_equal(open_tracer(bench, dead, 1, &error), -PTVM_NOT_FOUND);
	assert_string_equal(error.message, "all threads to trace have ended");
}

static void what_cannot_be_opened_or_mapped_is_told(void **state)
{
	const pid_t tids[] = { 11 };
	struct bench *bench = *state;
	struct ptvm_error error = { 0 };

	bench->machine.trace_errno = EBUSY;
	assert_int_equal(open_tracer(bench, tids, 1, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "intel_pt of thread 11: Intel PT is in use by another "
					   "tracer, or by KVM in mode host-guest");
	tracer_close(&bench->tracer);
	bench->machine.trace_errno = 0;
	bench->machine.cpus[1].map_trace_errno = EPERM;
	assert_int_equal(open_tracer(bench, tids, 1, NULL), -PTVM_SYSTEM);
}

static void a_filter_is_for_traces_only(void **state)
{
	const pid_t tids[] = { 11 };
	struct bench *bench = *state;
	struct ptvm_error error = { 0 };

	bench->choice.filter = "start 0x1000";
	assert_int_equal(open_tracer(bench, tids, 1, NULL), 0);
	assert_int_equal(bench->machine.filtered, CPUS);
	tracer_close(&bench->tracer);
	bench->machine.filter_errno = EOPNOTSUPP;
	assert_int_equal(open_tracer(bench, tids, 1, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "filter 'start 0x1000': this CPU has no such filter, or "
					   "not so many");
}

static void assert_events(const struct bench *bench, size_t rings, size_t events)
{
	assert_int_equal(bench->tracer.rings.count, rings);
	for (size_t i = 0; i < rings; i++)
		assert_int_equal(bench->tracer.rings.items[i].events.count, events);
}

static void a_thread_may_join(void **state)
{
	struct bench *bench = *state;

	open_two(bench);
	assert_int_equal(tracer_switch(&bench->tracer, true, NULL), 0);
	assert_int_equal(tracer_add_thread(&bench->tracer, 14, NULL), 0);
	assert_events(bench, CPUS, 6 + 2);
	assert_int_equal(bench->machine.switched_on, 4 + 2);
	assert_int_equal(tracer_add_thread(&bench->tracer, 14, NULL), 0); /* again */
	assert_int_equal(tracer_add_thread(&bench->tracer, DEAD, NULL), 0);
	assert_events(bench, CPUS, 6 + 2);
}

static void one_that_cannot_join_leaves_nothing(void **state)
{
	struct bench *bench = *state;

	open_two(bench);
	bench->machine.trace_errno = EBUSY;
	bench->machine.failing_cpu = 1;
	assert_int_equal(tracer_add_thread(&bench->tracer, 14, NULL), -PTVM_SYSTEM);
	assert_events(bench, CPUS, 6);
	assert_int_equal(bench->machine.cpus[0].closed, 2);
	assert_int_equal(tracer_switch(&bench->tracer, true, NULL), 0);
	assert_int_equal(bench->machine.switched_on, 4);
}

static void threads_may_have_rings_of_their_own(void **state)
{
	const pid_t tids[] = { DEAD, 11 };
	struct bench *bench = *state;

	bench->choice.is_per_thread = bench->choice.perf.no_kernel = true;
	assert_int_equal(open_tracer(bench, tids, 1, NULL), -PTVM_NOT_FOUND);
	tracer_close(&bench->tracer);
	assert_int_equal(open_tracer(bench, tids, 2, NULL), 0);
	assert_events(bench, 1, 2);
	assert_int_equal(bench->tracer.rings.items[0].tid, 11);
	bench->machine.cpus[0].map_trace_errno = EPERM;
	assert_int_equal(tracer_add_thread(&bench->tracer, 12, NULL), -PTVM_SYSTEM);
	assert_events(bench, 1, 2);
	bench->machine.cpus[0].map_trace_errno = 0;
	assert_int_equal(tracer_add_thread(&bench->tracer, DEAD, NULL), 0);
	assert_int_equal(tracer_add_thread(&bench->tracer, 12, NULL), 0);
	assert_events(bench, 2, 2);
	assert_int_equal(bench->machine.switched_on, 0);
}

/* What the file has after its header. */
static size_t read_file(const struct bench *bench, uint8_t *data, size_t size)
{
	FILE *file = fopen(bench->path, "rb");
	size_t count;

	assert_non_null(file);
	assert_int_equal(fseek(file, HEADER, SEEK_SET), 0);
	count = fread(data, 1, size, file);
	assert_int_equal(fclose(file), 0);
	return count;
}

static int drain_all(struct bench *bench, uint64_t *ret_bytes, struct ptvm_error *error)
{
	uint64_t bytes;
	int r = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < CPUS && !r; i++) {
		r = tracer_drain(&bench->tracer, i, &bench->out, &bench->losses[i], &bytes, error);
		*ret_bytes += bytes;
	}
	return r;
}

static uint64_t drain(struct bench *bench)
{
	uint64_t bytes;

	assert_int_equal(drain_all(bench, &bytes, NULL), 0);
	return bytes;
}

static void records_and_trace_go_to_the_file(void **state)
{
	static const uint8_t record[16] = { 14, [6] = 16, [8] = 0xaa };
	static const uint8_t trace[16] = { 0x02, 0x82 };
	struct bench *bench = *state;
	uint8_t file[200];

	open_two(bench);
	assert_int_equal(drain(bench), 0);
	assert_int_equal(read_file(bench, file, sizeof(file)), 0);
	fake_kernel_record(&bench->machine.cpus[1], record, sizeof(record));
	fake_kernel_trace(&bench->machine.cpus[1], trace, sizeof(trace));
	assert_int_equal(drain(bench), 32);
	assert_int_equal(read_file(bench, file, sizeof(file)), 16 + TRACE_RECORD + 16);
	assert_memory_equal(file, record, 16);
	assert_int_equal(file[16], 71);
	assert_int_equal(file[16 + 8], 16);
	assert_int_equal(file[16 + 32], 1);
	assert_int_equal(file[16 + 40], 1);
	assert_memory_equal(file + 16 + TRACE_RECORD, trace, 16);
	assert_int_equal(drain(bench), 0);
}

/* Returns the first CPU. */
static struct fake_kernel *trace_two(struct bench *bench)
{
	open_two(bench);
	assert_int_equal(tracer_switch(&bench->tracer, true, NULL), 0);
	return &bench->machine.cpus[0];
}

static void a_trace_that_stopped_goes_on(void **state)
{
	static uint8_t trace[FAKE_PAGE_SIZE + 1], file[3 * FAKE_PAGE_SIZE];
	struct fake_kernel *cpu;
	struct bench *bench = *state;

	memset(trace, 0x5a, sizeof(trace));
	cpu = trace_two(bench);
	assert_int_equal(fake_kernel_trace(cpu, trace, sizeof(trace)), FAKE_PAGE_SIZE);
	assert_true(cpu->is_stopped);
	assert_int_equal(drain(bench), FAKE_PAGE_SIZE);
	assert_false(cpu->is_stopped);
	assert_int_equal(fake_kernel_trace(cpu, trace, 8), 8);
	assert_int_equal(drain(bench), 8);
	/* The second piece says where it is in the trace. */
	read_file(bench, file, sizeof(file));
	assert_int_equal(file[TRACE_RECORD + FAKE_PAGE_SIZE + 17], FAKE_PAGE_SIZE >> 8);
}

/* Some kernels take what stopped for what is on, whether they tell that it stopped or not. */
static void a_stubborn_trace_goes_on(void **state)
{
	static uint8_t trace[FAKE_PAGE_SIZE + 1];
	struct fake_kernel *cpu;
	struct bench *bench = *state;

	cpu = trace_two(bench);
	cpu->is_stubborn = true;
	assert_int_equal(fake_kernel_trace(cpu, trace, sizeof(trace)), FAKE_PAGE_SIZE);
	assert_int_equal(drain(bench), FAKE_PAGE_SIZE);
	assert_false(cpu->is_stopped);
	cpu->is_stopped = true;
	bench->losses[0].stopped_at = 1;
	assert_int_equal(drain(bench), 0);
	assert_false(cpu->is_stopped);
	assert_int_equal(bench->losses[0].stopped_at, 0);
}

/* Hand out some trace: records tell of `offset` to `end`, and the trace goes to there. */
static void hand_out(struct fake_kernel *cpu, uint64_t offset, uint64_t end)
{
	static const uint8_t trace[FAKE_PAGE_SIZE];
	const uint64_t record[] = { (uint64_t)AUX_RECORD << 48 | PERF_RECORD_AUX, offset,
				    end - offset };
	uint8_t padded[AUX_RECORD] = { 0 };

	memcpy(padded, record, sizeof(record));
	assert_int_equal(fake_kernel_record(cpu, padded, sizeof(padded)), sizeof(padded));
	end -= fake_kernel_page(cpu)->aux_head;
	assert_int_equal(fake_kernel_trace(cpu, trace, end), end);
}

static void what_did_not_stop_is_not_interrupted(void **state)
{
	struct fake_kernel *cpu;
	struct bench *bench = *state;

	cpu = trace_two(bench);
	bench->machine.switched_off = 0;
	hand_out(cpu, 0, 8);
	assert_int_equal(drain(bench), AUX_RECORD + 8);
	assert_int_equal(drain(bench), 0);
	hand_out(cpu, 8, 16);
	assert_int_equal(drain(bench), AUX_RECORD + 8);
	assert_int_equal(drain(bench), 0);
	assert_int_equal(bench->machine.switched_off, 0);
}

/* The record that told so found no room. */
static void what_stopped_untold_goes_on(void **state)
{
	static const uint8_t trace[8];
	struct fake_kernel *cpu;
	struct bench *bench = *state;

	cpu = trace_two(bench);
	cpu->is_stubborn = true;
	hand_out(cpu, 0, 8);
	assert_int_equal(fake_kernel_trace(cpu, trace, sizeof(trace)), sizeof(trace));
	cpu->is_stopped = true;
	assert_int_equal(drain(bench), AUX_RECORD + 16);
	assert_true(cpu->is_stopped); /* a record may still come */
	assert_int_equal(drain(bench), 0);
	assert_false(cpu->is_stopped);
	/* Once is enough. */
	bench->machine.switched_on = 0;
	assert_int_equal(drain(bench), 0);
	assert_int_equal(bench->machine.switched_on, 0);
}

/* Another thread goes on, and its trace comes behind that of which nobody told. */
static void so_does_one_of_several(void **state)
{
	struct fake_kernel *cpu;
	struct bench *bench = *state;

	cpu = trace_two(bench);
	cpu->is_stubborn = true;
	hand_out(cpu, 8, 16);
	cpu->is_stopped = true;
	assert_int_equal(drain(bench), AUX_RECORD + 16);
	assert_false(cpu->is_stopped);
	bench->machine.switched_off = 0;
	hand_out(cpu, 16, 24);
	assert_int_equal(drain(bench), AUX_RECORD + 8);
	assert_int_equal(drain(bench), 0);
	assert_int_equal(bench->machine.switched_off, 0);
}

static void what_is_off_stays_off(void **state)
{
	static uint8_t trace[FAKE_PAGE_SIZE + 1];
	struct bench *bench = *state;

	open_two(bench);
	assert_int_equal(fake_kernel_trace(&bench->machine.cpus[0], trace, sizeof(trace)),
			 FAKE_PAGE_SIZE);
	assert_int_equal(drain(bench), FAKE_PAGE_SIZE);
	assert_false(bench->machine.cpus[0].is_on);
}

static void a_trace_that_stops_late_is_resumed_again(void **state)
{
	static const uint8_t trace[8] = { 0x02, 0x82 };
	struct fake_kernel *cpu;
	struct bench *bench = *state;

	cpu = trace_two(bench);
	assert_int_equal(fake_kernel_trace(cpu, trace, sizeof(trace)), sizeof(trace));
	assert_int_equal(drain(bench), sizeof(trace));
	cpu->is_stopped = true;
	assert_int_equal(drain(bench), 0);
	assert_false(cpu->is_stopped);
	/* Once is enough: it can stop only where bytes came. */
	bench->machine.switched_on = 0;
	assert_int_equal(drain(bench), 0);
	assert_int_equal(bench->machine.switched_on, 0);
}

static void what_was_not_written_stays_in_the_ring(void **state)
{
	static const uint8_t trace[16] = { 0x02, 0x82 };
	struct bench *bench = *state;
	int fd = bench->out.fd;
	uint64_t bytes;

	open_two(bench);
	fake_kernel_trace(&bench->machine.cpus[0], trace, sizeof(trace));
	bench->out.fd = -1;
	assert_int_equal(drain_all(bench, &bytes, NULL), -PTVM_SYSTEM);
	bench->out.fd = fd;
	assert_int_equal(drain(bench), sizeof(trace));
}

static void a_ring_without_sense_is_told(void **state)
{
	struct bench *bench = *state;
	struct ptvm_error error = { 0 };
	uint64_t bytes;

	open_two(bench);
	fake_kernel_page(&bench->machine.cpus[1])->aux_head = FAKE_PAGE_SIZE + 1;
	assert_int_equal(drain_all(bench, &bytes, &error), -PTVM_INCONSISTENT);
	assert_string_equal(error.message, "the kernel's place in ring 1 makes no sense");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_cpu_has_all_events_in_one_ring),
		TEST(samples_carry_the_trace_of_their_thread),
		TEST(threads_that_ended_are_left_out),
		TEST(what_cannot_be_opened_or_mapped_is_told),
		TEST(a_filter_is_for_traces_only),
		TEST(a_thread_may_join),
		TEST(one_that_cannot_join_leaves_nothing),
		TEST(threads_may_have_rings_of_their_own),
		TEST(records_and_trace_go_to_the_file),
		TEST(a_trace_that_stopped_goes_on),
		TEST(a_stubborn_trace_goes_on),
		TEST(what_did_not_stop_is_not_interrupted),
		TEST(what_stopped_untold_goes_on),
		TEST(so_does_one_of_several),
		TEST(what_is_off_stays_off),
		TEST(a_trace_that_stops_late_is_resumed_again),
		TEST(what_was_not_written_stays_in_the_ring),
		TEST(a_ring_without_sense_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
