#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/record/perf_open.h"
#include "tests/fake_kernel.h"

static int set_up(void **state)
{
	static struct fake_kernel kernel;

	fake_kernel_init(&kernel);
	*state = &kernel;
	return 0;
}

static int tear_down(void **state)
{
	fake_kernel_deinit(*state);
	return 0;
}

static void a_trace_is_described_as_perf_does(void **state)
{
	const struct perf_choice choice = { .pt_type = 8,
					    .pt_config = 0x2602,
					    .aux_watermark = 1 << 20,
					    .no_user = true,
					    .inherit = true,
					    .has_lost = true };
	struct perf_event_attr attr;

	perf_attr_make(PERF_TRACE, &choice, &attr);
	assert_int_equal(attr.size, 128);
	assert_int_equal(attr.type, 8);
	assert_int_equal(attr.config, 0x2602);
	assert_int_equal(attr.sample_period, 1);
	assert_int_equal(attr.freq, 0);
	assert_int_equal(attr.sample_type, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 16);
	assert_int_equal(attr.read_format, 4 | 16);
	assert_int_equal(attr.aux_watermark, 1 << 20);
	assert_true(attr.disabled && attr.inherit && attr.sample_id_all);
	assert_true(attr.exclude_user && attr.exclude_hv);
	assert_false(attr.exclude_kernel || attr.exclude_guest || attr.exclude_host);
	assert_false(attr.mmap || attr.comm || attr.context_switch);
}

static void a_trace_of_all_excludes_nothing(void **state)
{
	const struct perf_choice choice = { .pt_type = 8 };
	struct perf_event_attr attr;

	perf_attr_make(PERF_TRACE, &choice, &attr);
	assert_false(attr.exclude_user || attr.exclude_kernel || attr.exclude_hv ||
		     attr.exclude_guest || attr.inherit);
	assert_int_equal(attr.read_format, 4);
}

/* What the dummies have in common. */
static void make_dummy(enum perf_kind kind, const struct perf_choice *choice,
		       struct perf_event_attr *attr)
{
	perf_attr_make(kind, choice, attr);
	assert_int_equal(attr->size, 128);
	assert_int_equal(attr->type, 1);
	assert_int_equal(attr->config, 9);
	assert_int_equal(attr->sample_type, 1 << 1 | 1 << 2 | 1 << 7 | 1 << 16);
	assert_true(attr->sample_id_all && attr->exclude_kernel && attr->exclude_hv &&
		    attr->exclude_guest);
	assert_false(attr->disabled || attr->aux_watermark || attr->freq);
}

static void each_dummy_asks_for_its_records(void **state)
{
	const struct perf_choice choice = { .inherit = true, .aux_watermark = 1 };
	struct perf_event_attr attr;

	make_dummy(PERF_SWITCHES, &choice, &attr);
	assert_true(attr.context_switch);
	assert_false(attr.text_poke || attr.ksymbol || attr.mmap || attr.inherit);
	make_dummy(PERF_TEXT_POKES, &choice, &attr);
	assert_true(attr.text_poke && attr.ksymbol);
	assert_false(attr.context_switch || attr.mmap || attr.inherit);
	make_dummy(PERF_TASKS, &choice, &attr);
	assert_true(attr.mmap && attr.mmap2 && attr.comm && attr.comm_exec && attr.task &&
		    attr.ksymbol && attr.bpf_event && attr.inherit);
	assert_false(attr.context_switch || attr.text_poke);
}

static void samples_ask_for_trace(void **state)
{
	const struct perf_choice choice = { .aux_sample_size = 8192,
					    .inherit = true,
					    .tracepoint = 77 };
	struct perf_event_attr attr;

	perf_attr_make(PERF_SAMPLES, &choice, &attr);
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(attr.sample_period, 1000000);
	assert_int_equal(attr.sample_type, 0x10187 | PERF_SAMPLE_AUX);
	assert_int_equal(attr.aux_sample_size, 8192);
	assert_true(attr.disabled && attr.inherit);
	perf_attr_make(PERF_TRACEPOINT, &choice, &attr);
	assert_int_equal(attr.config, 77);
	assert_int_equal(attr.sample_type, 0x10587 | PERF_SAMPLE_AUX);
	assert_true(attr.disabled && attr.inherit);
	perf_attr_make(PERF_TRACE, &choice, &attr);
	assert_int_equal(attr.aux_sample_size, 0);
}

static int try_open(struct fake_kernel *kernel, enum perf_kind kind, pid_t tid, int cpu,
		    struct ptvm_error *error)
{
	const struct perf_choice choice = { .pt_type = 8 };
	struct perf_event_attr attr;
	int fd;

	perf_attr_make(kind, &choice, &attr);
	fd = perf_open(&kernel->table, kind, &attr, &(struct perf_place){ tid, cpu, 5 }, error);
	assert_int_equal(attr.size, 128);
	return fd;
}

static void an_event_is_opened_after_interruptions(void **state)
{
	struct fake_kernel *kernel = *state;

	kernel->interruptions = 3;
	assert_int_equal(try_open(kernel, PERF_TRACE, 12, 3, NULL), FAKE_FD);
	assert_int_equal(kernel->tid, 12);
	assert_int_equal(kernel->cpu, 3);
	assert_int_equal(kernel->group_fd, 5);
	assert_int_equal(kernel->attr.type, 8);
}

static void assert_message(struct fake_kernel *kernel, int sys_errno, enum perf_kind kind,
			   pid_t tid, const char *message)
{
	struct ptvm_error error = { 0 };

	kernel->open_errno = sys_errno;
	assert_int_equal(try_open(kernel, kind, tid, 3, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, message);
	assert_int_equal(error.sys_errno, sys_errno);
}

static void errors_say_what_and_what_helps(void **state)
{
	struct fake_kernel *kernel = *state;

	assert_message(kernel, EACCES, PERF_TRACE, 12,
		       "intel_pt of thread 12: not permitted: run as root, or lower "
		       "kernel.perf_event_paranoid");
	assert_message(kernel, EPERM, PERF_SWITCHES, -1,
		       "context switches on CPU 3: not permitted: run as root; "
		       "lockdown=confidentiality, or a container, keeps it from root, too");
	assert_message(kernel, EPERM, PERF_TRACEPOINT, 12,
		       "a tracepoint of thread 12: not permitted: run as root, or set "
		       "kernel.perf_event_paranoid to -1");
	assert_message(kernel, EINVAL, PERF_TRACE, -1,
		       "intel_pt on CPU 3: refused: the CPU has not all of the options that were "
		       "asked for");
	assert_message(kernel, EINVAL, PERF_TEXT_POKES, -1,
		       "changes of kernel code on CPU 3: refused: the kernel is too old for it, "
		       "before Linux 5.9");
	assert_message(kernel, EBUSY, PERF_TRACE, 12,
		       "intel_pt of thread 12: Intel PT is in use by another tracer, or by KVM in "
		       "mode host-guest");
	assert_message(kernel, ESRCH, PERF_TASKS, 12,
		       "maps and threads of thread 12: the thread has ended");
	assert_message(kernel, E2BIG, PERF_TASKS, 12,
		       "maps and threads of thread 12: the kernel is too old, before Linux 5.13");
	assert_message(kernel, EIO, PERF_TRACE, 12, "intel_pt of thread 12: Input/output error");
}

static void every_errno_has_one_line(void **state)
{
	struct fake_kernel *kernel = *state;
	struct ptvm_error error;

	for (kernel->open_errno = 1; kernel->open_errno < 134; kernel->open_errno++) {
		if (kernel->open_errno == EINTR)
			continue;
		memset(&error, 0, sizeof(error));
		assert_int_equal(try_open(kernel, PERF_TRACE, -1, 0, &error), -PTVM_SYSTEM);
		assert_true(strlen(error.message) > strlen("intel_pt on CPU 0: "));
		assert_null(strchr(error.message, '\n'));
	}
}

static void lost_counts_are_asked_for_where_they_are_known(void **state)
{
	struct fake_kernel *kernel = *state;

	assert_true(perf_lost_is_known(&kernel->table));
	assert_int_equal(kernel->attr.read_format, 4 | 16);
	assert_int_equal(kernel->closed, 1);
	kernel->open_errno = EINVAL;
	assert_false(perf_lost_is_known(&kernel->table));
	assert_int_equal(kernel->closed, 1);
}

static void events_are_switched_redirected_and_named(void **state)
{
	struct fake_kernel *kernel = *state;
	struct ptvm_error error = { 0 };
	uint64_t id;

	assert_int_equal(perf_switch(&kernel->table, FAKE_FD, true, NULL), 0);
	assert_true(kernel->is_on);
	assert_int_equal(perf_switch(&kernel->table, FAKE_FD, false, NULL), 0);
	assert_false(kernel->is_on);
	assert_int_equal(perf_redirect(&kernel->table, FAKE_FD, 3, NULL), 0);
	assert_int_equal(perf_id(&kernel->table, FAKE_FD, &id, NULL), 0);
	assert_int_equal(id, 4711);
	kernel->control_errno = EINVAL;
	assert_int_equal(perf_redirect(&kernel->table, FAKE_FD, 3, NULL), -PTVM_SYSTEM);
	assert_int_equal(perf_id(&kernel->table, FAKE_FD, &id, NULL), -PTVM_SYSTEM);
	assert_int_equal(perf_switch(&kernel->table, FAKE_FD, true, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "an event cannot be switched on: Invalid argument");
}

static void what_was_dropped_is_told_where_it_is_counted(void **state)
{
	struct fake_kernel *kernel = *state;

	kernel->lost = 5;
	assert_int_equal(perf_lost(&kernel->table, FAKE_FD), 0);
	kernel->attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	assert_int_equal(perf_lost(&kernel->table, FAKE_FD), 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_trace_is_described_as_perf_does),
		TEST(a_trace_of_all_excludes_nothing),
		TEST(each_dummy_asks_for_its_records),
		TEST(samples_ask_for_trace),
		TEST(an_event_is_opened_after_interruptions),
		TEST(errors_say_what_and_what_helps),
		TEST(every_errno_has_one_line),
		TEST(lost_counts_are_asked_for_where_they_are_known),
		TEST(events_are_switched_redirected_and_named),
		TEST(what_was_dropped_is_told_where_it_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
