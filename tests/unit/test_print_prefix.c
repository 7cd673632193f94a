#include "decode/print/print_prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/time_column.h"
#include "tests/perf_build.h"
#include "tests/print_bench.h"

/* What a line begins with, piece by piece; and a recording in which thread 9 of process 7 is called
 * "CPU 0/KVM" at first, thread 10 something else, and thread 11 runs vCPU 5 by its id. */

enum { PID = 7, TID = 8, NAMED = 9, OTHER = 10, BY_ID = 11 };

struct fixture {
	struct perf_build build;
	struct perf_data data;
	struct sideband *sideband;
	struct print_bench *bench;
	struct text text;
};

static void add_comm(struct fixture *f, uint32_t tid, uint64_t time_ns, const char *name)
{
	uint8_t body[24] = { PID };

	memcpy(body + 4, &tid, 4);
	memcpy(body + 8, name, strlen(name));
	perf_build_kernel(&f->build, PERF_COMM, 0, body, sizeof(body),
			  (struct build_trailer){ PID, tid, time_ns, 0, 1 });
}

static int set_up(void **state)
{
	static const uint64_t index[] = { 1, 2, 0, 0, BY_ID, PID, 5 };
	static struct fixture fixture;
	struct fixture *f = &fixture;

	*f = (struct fixture){ 0 };
	perf_build_pt(&f->build, 0, 1);
	perf_build_record(&f->build, PERF_ID_INDEX, 0, index, sizeof(index));
	add_comm(f, NAMED, 1, "CPU 0/KVM");
	add_comm(f, OTHER, 1, "CPUs 3/KVM");
	add_comm(f, BY_ID, 1, "CPU 4/KVM");
	add_comm(f, NAMED, 150, "renamed");
	assert_int_equal(perf_data_open_bytes(perf_build_file(&f->build), &f->data, NULL), 0);
	assert_int_equal(sideband_build(&f->data, &f->sideband), 0);
	f->bench = print_bench_new(FIELD_COMM | FIELD_PID | FIELD_TID | FIELD_TIME, "b");
	f->bench->config.nanoseconds = true;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	print_bench_free(f->bench);
	text_free(&f->text);
	sideband_free(f->sideband);
	perf_data_close(&f->data);
	perf_build_free(&f->build);
	return 0;
}

static void use_recording(struct fixture *f)
{
	f->bench->config.data = &f->data;
	f->bench->config.sideband = f->sideband;
}

static void expect(struct fixture *f, const char *expected)
{
	text_putc(&f->text, 0);
	assert_string_equal(f->text.data, expected);
	f->text.size = 0;
}

static void a_name_stands_on_the_right(void **state)
{
	struct fixture *f = *state;

	prefix_add_comm(&f->text, "name", TID, 8);
	expect(f, "    name ");
	prefix_add_comm(&f->text, "a name too long", TID, 8);
	expect(f, "a name too long ");
	prefix_add_comm(&f->text, "\033]0;\n", TID, 0);
	expect(f, "?]0;? ");
}

static void without_a_name_a_thread_has_its_number(void **state)
{
	struct fixture *f = *state;

	prefix_add_comm(&f->text, NULL, 4711, 8);
	expect(f, "   :4711 ");
	prefix_add_comm(&f->text, NULL, -1, 0);
	expect(f, ":-1 ");
}

static void a_thread_has_the_fields_that_are_wanted(void **state)
{
	struct fixture *f = *state;

	prefix_add_thread(&f->text, FIELD_COMM | FIELD_PID | FIELD_TID, "qemu", 70, 77);
	expect(f, "            qemu    70/77    ");
	prefix_add_thread(&f->text, FIELD_PID, "qemu", 70, 77);
	expect(f, "   70 ");
	prefix_add_thread(&f->text, FIELD_TID, "qemu", 70, 77);
	expect(f, "   77 ");
	prefix_add_thread(&f->text, FIELD_COMM, NULL, 70, 77);
	expect(f, "             :77 ");
	prefix_add_thread(&f->text, FIELD_CPU, "qemu", 70, 77);
	expect(f, "");
}

static void a_cpu_has_three_digits(void **state)
{
	struct fixture *f = *state;

	prefix_add_cpu(&f->text, 0);
	prefix_add_cpu(&f->text, 12);
	prefix_add_cpu(&f->text, 4095);
	prefix_add_cpu(&f->text, -1);
	expect(f, "[000] [012] [4095] [-01] ");
}

static void a_place_is_cpu_vmcs_and_side(void **state)
{
	const struct prefix_owner guest = { .vmcs = 0x2664e, .in_guest = true }, host = { 0 };
	struct fixture *f = *state;

	prefix_add_place(&f->text, FIELD_CPU | FIELD_VMCS | FIELD_NR, 1, &guest);
	expect(f, "[001] 0x2664e guest ");
	prefix_add_place(&f->text, FIELD_NR, 1, &host);
	expect(f, "host ");
	prefix_add_place(&f->text, FIELD_VMCS, 1, &host);
	expect(f, "0x0 ");
}

static void a_time_waits_where_it_counts_from_other_lines(void **state)
{
	struct fixture *f = *state;
	struct print_config config = { .nanoseconds = true };

	prefix_add_time(&f->text, &config, 5000000001);
	expect(f, "    5.000000001: ");
	config.relative_time = true;
	prefix_add_time(&f->text, &config, 5000000001);
	assert_int_equal(f->text.size, 1);
	assert_int_equal(f->text.data[0], TIME_COLUMN_MARK);
	config.relative_time = false;
	config.delta_time = true;
	prefix_add_time(&f->text, &config, 5000000001);
	assert_int_equal(f->text.size, 2);
}

static int64_t vcpu_of(const struct fixture *f, int32_t tid)
{
	return prefix_vcpu(&f->bench->config, &(struct prefix_owner){ .tid = tid, .time_ns = 5 });
}

static void a_vcpu_is_known_by_its_id_or_by_its_threads_name(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(vcpu_of(f, NAMED), -1);
	use_recording(f);
	assert_int_equal(vcpu_of(f, NAMED), 0);
	assert_int_equal(vcpu_of(f, BY_ID), 5);
	assert_int_equal(vcpu_of(f, OTHER), -1);
	assert_int_equal(vcpu_of(f, 4711), -1);
}

static void a_guest_has_a_machine_and_a_vcpu(void **state)
{
	const uint32_t both = FIELD_MACHINE_PID | FIELD_VCPU;
	struct prefix_owner owner = { .pid = PID, .tid = NAMED, .time_ns = 5, .in_guest = true };
	struct fixture *f = *state;

	prefix_add_machine(&f->text, both, &f->bench->config, &owner);
	expect(f, "");
	use_recording(f);
	prefix_add_machine(&f->text, both, &f->bench->config, &owner);
	expect(f, "VM:    7 VCPU:000 ");
	prefix_add_machine(&f->text, FIELD_VCPU, &f->bench->config, &owner);
	expect(f, "VCPU:000 ");
	owner.tid = OTHER;
	prefix_add_machine(&f->text, both, &f->bench->config, &owner);
	expect(f, "VM:    7 ");
	owner.in_guest = false;
	prefix_add_machine(&f->text, both, &f->bench->config, &owner);
	expect(f, "");
}

static bool is_wanted(const struct print_config *config, int32_t tid, uint64_t vmcs,
		      const char *comm)
{
	const struct prefix_owner owner = {
		.pid = PID, .tid = tid, .time_ns = 5, .vmcs = vmcs, .comm = comm
	};

	return prefix_is_wanted(config, &owner);
}

static void parse(const char *list, struct number_ranges *ret)
{
	assert_int_equal(number_ranges_parse("--list", list, ret, NULL), 0);
}

static void threads_are_chosen_by_number(void **state)
{
	struct print_config config = { 0 };

	assert_true(is_wanted(&config, TID, 0, NULL));
	parse("8,10-12", &config.tids);
	assert_true(is_wanted(&config, TID, 0, NULL));
	assert_false(is_wanted(&config, NAMED, 0, NULL));
	parse("6,8", &config.pids);
	assert_false(is_wanted(&config, TID, 0, NULL));
	parse("7", &config.pids);
	assert_true(is_wanted(&config, TID, 0, NULL));
	parse("0x10", &config.vmcs);
	assert_false(is_wanted(&config, TID, 0, NULL));
	assert_true(is_wanted(&config, TID, 0x10, NULL));
}

static void threads_are_chosen_by_vcpu(void **state)
{
	struct fixture *f = *state;
	struct print_config *config = &f->bench->config;

	use_recording(f);
	parse("0", &config->vcpus);
	assert_true(is_wanted(config, NAMED, 0, NULL));
	assert_false(is_wanted(config, BY_ID, 0, NULL));
	assert_false(is_wanted(config, OTHER, 0, NULL));
}

static void threads_are_chosen_by_whole_names(void **state)
{
	struct print_config config = { .comms = "sh,qemu,CPU 0/KVM" };

	assert_true(is_wanted(&config, TID, 0, "qemu"));
	assert_true(is_wanted(&config, TID, 0, "sh"));
	assert_true(is_wanted(&config, TID, 0, "CPU 0/KVM"));
	assert_false(is_wanted(&config, TID, 0, "qem"));
	assert_false(is_wanted(&config, TID, 0, "qemu2"));
	assert_false(is_wanted(&config, TID, 0, "sh,qemu"));
	assert_false(is_wanted(&config, TID, 0, ""));
	assert_false(is_wanted(&config, TID, 0, NULL));
	config.comms = "sh,:12"; /* as such a thread is printed */
	assert_true(is_wanted(&config, 12, 0, NULL));
	assert_false(is_wanted(&config, 12, 0, "qemu"));
	assert_false(is_wanted(&config, 123, 0, NULL));
}

static void sides_are_chosen(void **state)
{
	const struct print_config guests = { .guest_only = true }, hosts = { .host_only = true };
	const struct prefix_owner guest = { .in_guest = true }, host = { 0 };

	assert_true(prefix_is_wanted(&guests, &guest));
	assert_false(prefix_is_wanted(&guests, &host));
	assert_true(prefix_is_wanted(&hosts, &host));
	assert_false(prefix_is_wanted(&hosts, &guest));
}

static void print_at(struct fixture *f, uint64_t time_ns, const char *text)
{
	f->bench->printer.time_ns = time_ns;
	prefix_refresh(&f->bench->printer);
	text_puts(&f->bench->printer.out, text);
}

static void lines_of_one_time_are_a_run(void **state)
{
	struct fixture *f = *state;
	struct printer *printer = &f->bench->printer;

	print_at(f, 10, "abc");
	print_at(f, 10, "d");
	print_at(f, 20, "");
	print_at(f, 30, "efg");
	prefix_end_run(printer);
	prefix_end_run(printer);
	text_puts(&printer->out, "h");
	prefix_end_run(printer);
	assert_int_equal(printer->runs.count, 2);
	assert_int_equal(printer->runs.items[0].time_ns, 10);
	assert_int_equal(printer->runs.items[0].end, 4);
	assert_int_equal(printer->runs.items[1].time_ns, 30);
	assert_int_equal(printer->runs.items[1].end, 8);
}

static void an_origin_is_a_run_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct printer *printer = &f->bench->printer;

	print_at(f, 10, "abc");
	prefix_end_run(printer);
	printer->runs.items[0].record = 1;
	text_puts(&printer->out, "d");
	prefix_end_run(printer);
	assert_int_equal(printer->runs.count, 2);
	assert_int_equal(printer->runs.items[0].end, 3);
	assert_int_equal(printer->runs.items[1].end, 4);
}

static void expect_prefix(struct fixture *f, uint64_t time_ns, const char *expected)
{
	struct printer *printer = &f->bench->printer;

	printer->time_ns = printer->told_ns = time_ns;
	prefix_refresh(printer);
	text_add(&f->text, printer->prefix.text.data, printer->prefix.text.size);
	expect(f, expected);
}

/* Thread NAMED comes at 100 ns, and OTHER of another process at 200. */
static void use_switches(struct fixture *f)
{
	static const struct switch_entry switches[] = {
		{ .time = 90, .settled = 100, .pid = PID, .tid = NAMED },
		{ .time = 190, .settled = 200, .pid = 70, .tid = OTHER },
	};

	f->bench->printer.where.pid = -1;
	f->bench->printer.where.switches = switches;
	f->bench->printer.where.switch_count = 2;
}

static void the_prefix_follows_the_switches(void **state)
{
	struct fixture *f = *state;

	use_recording(f);
	use_switches(f);
	expect_prefix(f, 99, "             :-1    -1/-1        0.000000099: ");
	expect_prefix(f, 100, "       CPU 0/KVM     7/9         0.000000100: ");
	assert_int_equal(f->bench->printer.thread.until_ns, 200);
	expect_prefix(f, 200, "      CPUs 3/KVM    70/10        0.000000200: ");
	assert_int_equal(f->bench->printer.thread.until_ns, UINT64_MAX);
}

static void a_thread_of_its_own_queue_needs_no_switches(void **state)
{
	struct fixture *f = *state;

	use_switches(f);
	f->bench->printer.where.pid = PID;
	expect_prefix(f, 100, "              :8     7/8         0.000000100: ");
	prefix_switch(&f->bench->printer);
	expect_prefix(f, 200, "              :8     7/8         0.000000200: ");
}

static void a_thread_may_take_another_name(void **state)
{
	struct fixture *f = *state;

	use_recording(f);
	use_switches(f);
	expect_prefix(f, 149, "       CPU 0/KVM     7/9         0.000000149: ");
	expect_prefix(f, 150, "         renamed     7/9         0.000000150: ");
}

static void where_a_name_stands_is_known(void **state)
{
	struct fixture *f = *state;
	struct printer *printer = &f->bench->printer;

	use_recording(f);
	use_switches(f);
	expect_prefix(f, 100, "       CPU 0/KVM     7/9         0.000000100: ");
	assert_int_equal(printer->prefix.comm_at, 0);
	assert_int_equal(printer->prefix.comm_pad, 7);
	f->bench->config.fields |= FIELD_MACHINE_PID;
	printer->context.nr = printer->prefix.is_place_stale = true;
	expect_prefix(f, 101, "VM:    7               :9     7/9         0.000000101: ");
	assert_int_equal(printer->prefix.comm_at, strlen("VM:    7 "));
	assert_int_equal(printer->prefix.comm_pad, 14);
	assert_false(printer->prefix.is_place_stale);
}

/* The kernel is in __switch_to between the two times that a switch has. */
static void a_switch_under_way_is_completed(void **state)
{
	struct fixture *f = *state;
	struct printer *printer = &f->bench->printer;

	use_switches(f);
	expect_prefix(f, 189, "              :9     7/9         0.000000189: ");
	prefix_switch(printer);
	assert_int_equal(printer->thread.tid, NAMED);
	expect_prefix(f, 190, "              :9     7/9         0.000000190: ");
	prefix_switch(printer);
	assert_int_equal(printer->thread.tid, OTHER);
	assert_int_equal(printer->thread.until_ns, UINT64_MAX);
	expect_prefix(f, 191, "             :10    70/10        0.000000191: ");
	prefix_switch(printer);
	assert_int_equal(printer->thread.tid, OTHER);
}

static void times_are_chosen(void **state)
{
	struct fixture *f = *state;
	struct printer *printer = &f->bench->printer;

	f->bench->config.times = (struct time_ranges){ .items = { { 10, 20 } }, .count = 1 };
	for (uint64_t time_ns = 9; time_ns <= 21; time_ns++) {
		printer->time_ns = time_ns;
		prefix_refresh(printer);
		assert_int_equal(printer->prefix.is_wanted, time_ns >= 10 && time_ns <= 20);
		assert_false(printer->prefix.is_stale);
	}
}

static void expect_time(struct printer *printer, uint64_t time_ns, const char *expected)
{
	printer->time_ns = time_ns;
	prefix_refresh(printer);
	assert_int_equal(printer->prefix.text.size, strlen(expected));
	assert_memory_equal(printer->prefix.text.data, expected, printer->prefix.text.size);
}

static void a_time_stands_while_it_looks_the_same(void **state)
{
	struct fixture *f = *state;
	struct printer *printer = &f->bench->printer;

	f->bench->config.nanoseconds = false;
	f->bench->config.fields = FIELD_TIME | FIELD_NR;
	expect_time(printer, 0, "host     0.000000: ");
	expect_time(printer, 999, "host     0.000000: ");
	expect_time(printer, 1000, "host     0.000001: ");
	printer->context.nr = printer->prefix.is_place_stale = true;
	expect_time(printer, 1999, "guest     0.000001: ");
	f->bench->config.times = (struct time_ranges){ .items = { { 0, 2000 } }, .count = 1 };
	printer->time_ns = 3000;
	prefix_refresh(printer);
	assert_false(printer->prefix.is_wanted);
	expect_time(printer, 2000, "guest     0.000002: ");
}

static void each_nanosecond_looks_different(void **state)
{
	struct fixture *f = *state;
	struct printer *printer = &f->bench->printer;

	f->bench->config.fields = FIELD_TIME;
	expect_time(printer, 1000, "    0.000001000: ");
	expect_time(printer, 1001, "    0.000001001: ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_stands_on_the_right),
		TEST(without_a_name_a_thread_has_its_number),
		TEST(a_thread_has_the_fields_that_are_wanted),
		TEST(a_cpu_has_three_digits),
		TEST(a_place_is_cpu_vmcs_and_side),
		TEST(a_time_waits_where_it_counts_from_other_lines),
		TEST(a_vcpu_is_known_by_its_id_or_by_its_threads_name),
		TEST(a_guest_has_a_machine_and_a_vcpu),
		TEST(threads_are_chosen_by_number),
		TEST(threads_are_chosen_by_vcpu),
		TEST(threads_are_chosen_by_whole_names),
		TEST(sides_are_chosen),
		TEST(lines_of_one_time_are_a_run),
		TEST(an_origin_is_a_run_of_its_own),
		TEST(the_prefix_follows_the_switches),
		TEST(a_thread_of_its_own_queue_needs_no_switches),
		TEST(a_thread_may_take_another_name),
		TEST(where_a_name_stands_is_known),
		TEST(a_switch_under_way_is_completed),
		TEST(times_are_chosen),
		TEST(a_time_stands_while_it_looks_the_same),
		TEST(each_nanosecond_looks_different),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
