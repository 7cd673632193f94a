/* What records say of machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"
#include "decode/code/machine_parts.h"
#include "decode/perf/perf_feature.h"
#include "decode/perf/perf_record.h"
#include "tests/record_make.h"

#define TEXT 0xffffffff81000000u

enum { KERNEL = 1, USER = 2, GUEST = 4, PID = 77, PAGE = 4096, MOST = 16 };

struct bench {
	struct perf_data data;
	struct machines machines;
	struct perf_record made[MOST];
	size_t count;
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->machines.host = machine_new(0, false);
	assert_non_null(bench->machines.host);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	machines_free(&bench->machines);
	vec_free(&bench->data.records);
	for (size_t i = 0; i < bench->count; i++)
		record_drop(&bench->made[i]);
	free(bench);
	return 0;
}

/* Add a record whose time is its number, ten times. */
static struct perf_record *add(struct bench *bench, uint16_t type, uint16_t misc, const void *body,
			       size_t size)
{
	struct perf_record record = record_make(type, misc, body, size);

	assert_true(bench->count < MOST);
	bench->made[bench->count++] = record;
	record.time = 10 * bench->count;
	assert_true(vec_push(&bench->data.records, record));
	return &bench->data.records.items[bench->data.records.count - 1];
}

static struct perf_record *add_map(struct bench *bench, uint16_t misc, int32_t pid, uint64_t start,
				   uint64_t size, uint64_t page_offset, const char *name)
{
	struct {
		int32_t pid, tid;
		uint64_t start, size, page_offset;
		char name[64];
	} body = { pid, pid, start, size, page_offset, { 0 } };

	assert_true(strlen(name) < sizeof(body.name));
	strcpy(body.name, name);
	return add(bench, PERF_MMAP, misc, &body, sizeof(body));
}

static struct perf_record *add_fork(struct bench *bench, uint16_t misc, int32_t pid, int32_t parent)
{
	const int32_t body[6] = { pid, parent, pid, parent };

	return add(bench, PERF_FORK, misc, body, sizeof(body));
}

static struct perf_record *add_exec(struct bench *bench, int32_t pid)
{
	const struct {
		int32_t pid, tid;
		char name[8];
	} body = { pid, pid, "sh" };

	return add(bench, PERF_COMM, PERF_MISC_EXEC, &body, sizeof(body));
}

static struct perf_record *add_poke(struct bench *bench, uint16_t misc, char what)
{
	const uint64_t address = TEXT;
	uint8_t body[14] = { [8] = 1, 0, 1, 0, 'o', (uint8_t)what };

	memcpy(body, &address, 8);
	return add(bench, PERF_TEXT_POKE, misc, body, sizeof(body));
}

static struct perf_record *add_ksymbol(struct bench *bench, uint64_t address, uint32_t size,
				       uint16_t flags)
{
	const struct {
		uint64_t address;
		uint32_t size;
		uint16_t type, flags;
		char name[8];
	} body = { address, size, 1, flags, "prog" };

	return add(bench, PERF_KSYMBOL, KERNEL, &body, sizeof(body));
}

static struct machine *read_all(struct bench *bench)
{
	assert_int_equal(machines_read_records(&bench->machines, &bench->data), 0);
	return bench->machines.host;
}

static const char *dso_at(struct machine *machine, int32_t pid, uint64_t address, uint64_t time)
{
	struct symbol_view view;

	machine_symbol(machine, pid, address, time, &view);
	return view.dso ? view.dso : "";
}

/* The name of the file at a user's address. */
static const char *file_at(struct machine *machine, int32_t pid, uint64_t time)
{
	struct process_view view;

	if (!processes_find(&machine->processes, pid, PAGE, time, &view))
		return "";
	return view.map->dso->name;
}

/* The byte at an address of the kernel, '-' where there is no code. */
static char code_at(struct machine *machine, uint64_t address, uint64_t time)
{
	struct code_view view;

	return machine_code(machine, -1, address, time, &view) ? '-' : (char)view.data[0];
}

static struct machine *guest_of(const struct bench *bench, int32_t pid)
{
	struct machine *guest = machines_guest(&bench->machines, pid);

	assert_non_null(guest);
	assert_int_equal(guest->pid, pid);
	return guest;
}

static void modules_have_perfs_names(void **state)
{
	static const struct {
		const char *file, *name;
	} cases[] = { { "/lib/modules/6.1/kvm.ko", "[kvm]" },
		      { "/lib/modules/6.1/kvm-intel.ko.xz", "[kvm_intel]" },
		      { "vfio-pci-core.ko", "[vfio_pci_core]" },
		      { "/some.ko.d/module", "[module]" },
		      { "[bpf]", "[bpf]" },
		      { "[a-b.ko]", "[a-b.ko]" },
		      { "", "[]" } };
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		add_map(bench, KERNEL, -1, TEXT + i * PAGE, PAGE, 0, cases[i].file);
	(void)read_all(bench);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(dso_at(bench->machines.host, -1, TEXT + i * PAGE, 1000),
				    cases[i].name);
}

static void the_kernels_map_tells_where_a_symbol_was(void **state)
{
	struct bench *bench = *state;
	struct machine *host;

	add_map(bench, KERNEL, -1, TEXT, PAGE, 0, "[kernel.kallsyms]_text"); /* kptr_restrict */
	add_map(bench, KERNEL, -1, TEXT, PAGE, 5, "[kernel.kallsyms]");
	add_map(bench, KERNEL, -1, TEXT, PAGE, TEXT + 7, "[kernel.kallsyms]_stext");
	add_map(bench, KERNEL, -1, TEXT, PAGE, TEXT + 8, "[kernel.kallsyms]_text");
	host = read_all(bench);
	assert_string_equal(host->reference_name, "_stext");
	assert_int_equal(host->reference_address, TEXT + 7);
	assert_string_equal(dso_at(host, -1, TEXT, 100), "[kernel.kallsyms]");
	assert_string_equal(dso_at(host, -1, TEXT, 9), "");
}

static void guests_kernels_are_found_by_id_or_by_pid(void **state)
{
	struct bench *bench = *state;

	add_map(bench, GUEST, 123, TEXT, PAGE, TEXT, "[guest.kernel.kallsyms.123]_text");
	add_map(bench, GUEST, 0, TEXT, PAGE, TEXT + 1, "[guest.kernel.kallsyms]_text");
	add_map(bench, GUEST, -1, TEXT, PAGE, TEXT + 2, "[guest.kernel.kallsyms]_etext");
	add_map(bench, GUEST, 123, TEXT, PAGE, TEXT + 3, "[kernel.kallsyms]_stext")->machine_pid =
		9;
	add_map(bench, KERNEL, -1, TEXT, PAGE, TEXT + 4, "[kernel.kallsyms]_x")->machine_pid = 8;
	assert_null(read_all(bench)->reference_name);
	assert_int_equal(bench->machines.guest_count, 4);
	assert_string_equal(guest_of(bench, 123)->reference_name, "_text");
	assert_int_equal(guest_of(bench, 0)->reference_address, TEXT + 1);
	assert_string_equal(guest_of(bench, 9)->reference_name, "_stext");
	assert_string_equal(guest_of(bench, 8)->reference_name, "_x");
	assert_string_equal(dso_at(guest_of(bench, 123), -1, TEXT, 100),
			    "[guest.kernel.kallsyms.123]");
}

/* A small file can name any number of them. */
static void guests_that_are_too_many_are_left_out_and_told(void **state)
{
	struct bench *bench = *state;
	struct perf_record record =
		*add_map(bench, GUEST, 1, TEXT, PAGE, TEXT, "[guest.kernel.kallsyms]_text");

	for (record.machine_pid = 2; record.machine_pid < MACHINES_GUESTS_MAX + 10;
	     record.machine_pid++)
		assert_true(vec_push(&bench->data.records, record));
	add_ksymbol(bench, TEXT, 16, 0);
	assert_string_equal(dso_at(read_all(bench), -1, TEXT, 30), "prog");
	assert_int_equal(bench->machines.guest_count, MACHINES_GUESTS_MAX);
	assert_non_null(guest_of(bench, MACHINES_GUESTS_MAX));
	assert_string_equal(machines_note(&bench->machines, 0),
			    "more than 4096 guests: what is of others is left out");
	assert_null(machines_note(&bench->machines, 1));
}

static void pokes_are_of_the_kernel_that_the_record_names(void **state)
{
	struct bench *bench = *state;

	add_poke(bench, KERNEL, 'h');
	add_poke(bench, KERNEL, 'g')->machine_pid = 5;
	add_poke(bench, GUEST, 'd')->pid = 6;
	assert_int_equal(code_at(read_all(bench), TEXT, 100), 'h');
	assert_int_equal(code_at(bench->machines.host, TEXT, 9), 'o');
	assert_int_equal(code_at(guest_of(bench, 5), TEXT, 100), 'g');
	assert_int_equal(code_at(guest_of(bench, 6), TEXT, 100), 'd');
}

static void symbols_are_there_until_they_are_unregistered(void **state)
{
	struct bench *bench = *state;
	struct machine *host;

	add_ksymbol(bench, TEXT, 16, 0);
	add_ksymbol(bench, TEXT, 16, 1);
	add_ksymbol(bench, TEXT + PAGE, 16, 2); /* some flag of tomorrow */
	host = read_all(bench);
	assert_string_equal(dso_at(host, -1, TEXT, 10), "prog");
	assert_string_equal(dso_at(host, -1, TEXT, 20), "");
	assert_string_equal(dso_at(host, -1, TEXT + PAGE + 15, 40), "prog");
	assert_string_equal(dso_at(host, -1, TEXT + PAGE + 16, 40), "");
}

static void damaged_records_are_left_out_and_told(void **state)
{
	static const uint16_t types[] = { PERF_MMAP,      PERF_MMAP2,   PERF_FORK,     PERF_COMM,
					  PERF_TEXT_POKE, PERF_KSYMBOL, PERF_BPF_EVENT };
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		add(bench, types[i], KERNEL, "", 1);
	add_map(bench, KERNEL, -1, TEXT, 0, 0, "empty");
	add_map(bench, KERNEL, -1, TEXT, UINT64_MAX - TEXT + 1, 0, "wraps");
	add_ksymbol(bench, UINT64_MAX - 15, 16, 0);
	(void)read_all(bench);
	assert_int_equal(bench->machines.host->maps.list.count, 0);
	assert_int_equal(bench->machines.host->ksymbols.list.count, 0);
	assert_int_equal(bench->machines.host->pokes.list.count, 0);
	assert_string_equal(machines_note(&bench->machines, 0),
			    "10 damaged records of maps, forks, names or kernel text");
	assert_null(machines_note(&bench->machines, 1));
}

static void one_damaged_record_is_one(void **state)
{
	struct bench *bench = *state;

	add(bench, PERF_KSYMBOL, KERNEL, "", 1);
	add(bench, PERF_SWITCH, KERNEL, "", 1); /* nobody asks */
	add_map(bench, KERNEL, -1, UINT64_MAX - PAGE, PAGE, 0, "last");
	assert_string_equal(dso_at(read_all(bench), -1, UINT64_MAX - PAGE, 1000), "[last]");
	assert_string_equal(machines_note(&bench->machines, 0),
			    "1 damaged record of maps, forks, names or kernel text");
}

static void children_have_maps_and_threads_are_no_children(void **state)
{
	struct bench *bench = *state;
	struct machine *host;

	add_map(bench, USER, PID, PAGE, PAGE, 0, "/bin/a");
	add_fork(bench, 0, PID + 1, PID);
	add_fork(bench, 0, PID, PID);                  /* a thread */
	add_fork(bench, PERF_MISC_EXEC, PID + 2, PID); /* made up by perf at its start */
	add_exec(bench, PID + 1);
	host = read_all(bench);
	assert_string_equal(file_at(host, PID, 1000), "/bin/a");
	assert_string_equal(file_at(host, PID + 1, 20), "/bin/a");
	assert_string_equal(file_at(host, PID + 1, 50), "");
	assert_string_equal(file_at(host, PID + 2, 1000), "");
}

/* A later map of a process may be the first record of it. */
static void spaces_are_known_before_what_is_mapped(void **state)
{
	struct bench *bench = *state;
	struct machine *host;

	add_fork(bench, 0, PID + 1, PID);
	add_map(bench, USER, PID + 1, PAGE, PAGE, 0, "/bin/b");
	add_exec(bench, PID + 1);
	add_map(bench, USER, PID + 1, PAGE, PAGE, 0, "/bin/c");
	host = read_all(bench);
	assert_string_equal(file_at(host, PID + 1, 19), "");
	assert_string_equal(file_at(host, PID + 1, 20), "/bin/b");
	assert_string_equal(file_at(host, PID + 1, 30), "");
	assert_string_equal(file_at(host, PID + 1, 40), "/bin/c");
}

static void what_guests_processes_do_is_not_the_hosts(void **state)
{
	struct bench *bench = *state;
	struct machine *host;

	add_map(bench, USER, PID, PAGE, PAGE, 0, "/bin/host");
	add_map(bench, USER, PID, PAGE, PAGE, 0, "/bin/guest")->machine_pid = 5;
	add_exec(bench, PID)->machine_pid = 5;
	add_fork(bench, 0, PID + 1, PID)->machine_pid = 5;
	host = read_all(bench);
	assert_string_equal(file_at(host, PID, 1000), "/bin/host");
	assert_string_equal(file_at(host, PID + 1, 1000), "");
}

static void what_is_no_file_is_named_as_perf_names_it(void **state)
{
	static const char *const names[] = { "//anon",  "/dev/zero (deleted)", "/anon_hugepage",
					     "[stack]", "/SYSV00000000",       "[heap]" };
	struct process_view view;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct bench *bench;

		assert_int_equal(set_up(state), 0);
		bench = *state;
		add_map(bench, USER, PID, PAGE, PAGE, 0, names[i]);
		add_map(bench, USER, PID, 2 * PAGE, PAGE, 0, "[vdso]");
		add_map(bench, USER | PERF_MISC_MMAP_DATA, PID, 3 * PAGE, PAGE, 0, names[i]);
		assert_string_equal(file_at(read_all(bench), PID, 10), "/tmp/perf-77.map");
		assert_true(processes_find(&bench->machines.host->processes, PID, PAGE, 10, &view));
		assert_true(view.map->dso->is_anonymous);
		assert_true(
			processes_find(&bench->machines.host->processes, PID, 2 * PAGE, 30, &view));
		assert_string_equal(view.map->dso->name, "[vdso]");
		assert_false(view.map->dso->is_anonymous);
		assert_true(
			processes_find(&bench->machines.host->processes, PID, 3 * PAGE, 30, &view));
		assert_string_equal(view.map->dso->name, names[i]); /* data */
		assert_true(view.map->dso->is_anonymous);
		assert_int_equal(tear_down(state), 0);
	}
}

static void build_ids_are_those_of_the_hosts_programs(void **state)
{
	static struct perf_build_id ids[] = {
		{ .cpumode = KERNEL, .pid = -1, .id = { { 1 }, 20 }, .filename = "/bin/b" },
		{ .cpumode = USER, .pid = 55, .id = { { 2 }, 20 }, .filename = "/bin/b" },
		{ .cpumode = USER, .pid = -1, .id = { { 3 }, 20 }, .filename = "/bin/c" },
		{ .cpumode = USER, .pid = 0, .id = { { 4 }, 20 }, .filename = "/bin/a" },
	};
	static const struct {
		const char *name;
		uint8_t id; /* the first byte; 0 none */
	} cases[] = { { "/bin/a", 4 }, { "/bin/b", 0 }, { "/bin/c", 3 }, { "/bin/d", 0 } };
	struct bench *bench = *state;
	struct process_view view;

	bench->data.build_ids.items = ids;
	bench->data.build_ids.count = sizeof(ids) / sizeof(ids[0]);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		add_map(bench, USER, PID, (i + 1) * PAGE, PAGE, 0, cases[i].name);
	(void)read_all(bench);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(processes_find(&bench->machines.host->processes, PID, (i + 1) * PAGE,
					   1000, &view));
		assert_int_equal(view.map->dso->build_id.size, cases[i].id ? 20 : 0);
		assert_int_equal(view.map->dso->build_id.bytes[0], cases[i].id);
	}
}

static void the_tables_vdso_is_not_that_of_32_bit_code(void **state)
{
	static struct perf_build_id table = {
		.cpumode = USER, .pid = -1, .id = { { 1 }, 20 }, .filename = "[vdso]"
	};
	static const uint64_t starts[] = { 0xf7fc2000, 0x7fff12345000 };
	struct bench *bench = *state;
	struct process_view view;
	struct machine *host;

	bench->data.build_ids.items = &table;
	bench->data.build_ids.count = 1;
	for (size_t i = 0; i < 2; i++)
		add_map(bench, USER, PID, starts[i], PAGE, 0, "[vdso]");
	host = read_all(bench);
	for (size_t i = 0; i < 2; i++) {
		assert_true(processes_find(&host->processes, PID, starts[i], 1000, &view));
		assert_int_equal(view.map->dso->build_id.size, i ? 20 : 0);
	}
}

static void a_build_id_of_the_map_goes_before_the_tables(void **state)
{
	struct {
		int32_t pid, tid;
		uint64_t start, size, page_offset;
		uint8_t id_size, zero[3], id[20];
		uint32_t protection, flags;
		char name[8];
	} body = { PID, PID, PAGE, PAGE, 0, 20, { 0 }, { 9 }, 5, 2, "/bin/a" };
	static struct perf_build_id table = {
		.cpumode = USER, .pid = -1, .id = { { 3 }, 20 }, .filename = "/bin/a"
	};
	struct bench *bench = *state;
	struct process_view view;

	bench->data.build_ids.items = &table;
	bench->data.build_ids.count = 1;
	add(bench, PERF_MMAP2, USER | PERF_MISC_MMAP_BUILD_ID, &body, sizeof(body));
	(void)read_all(bench);
	assert_true(processes_find(&bench->machines.host->processes, PID, PAGE, 1000, &view));
	assert_int_equal(view.map->dso->build_id.bytes[0], 9);
}

/* The table has modules, too, and kernels of guests. */
static void the_kernels_build_id_is_in_the_table(void **state)
{
	static struct perf_build_id table[] = {
		{ KERNEL, -1, { { 1 }, 20 }, "[kernel.kallsyms]" },
		{ KERNEL, -1, { { 2 }, 20 }, "/lib/modules/6.1/kvm.ko" },
		{ KERNEL, 7, { { 3 }, 20 }, "[kernel.kallsyms]" },
		{ USER, -1, { { 4 }, 20 }, "[kernel.kallsyms]" },
	};
	struct bench *bench = *state;

	assert_int_equal(read_all(bench)->kernel_id.size, 0);
	bench->data.build_ids.items = table;
	bench->data.build_ids.count = sizeof(table) / sizeof(table[0]);
	assert_int_equal(read_all(bench)->kernel_id.bytes[0], 1);
}

/* Maps of one file at many places are of one file. */
static void a_file_is_known_once(void **state)
{
	struct bench *bench = *state;

	add_map(bench, USER, PID, PAGE, PAGE, 0, "/bin/a");
	add_map(bench, USER, PID + 1, 5 * PAGE, PAGE, 0, "/bin/a");
	add_map(bench, USER, PID, 2 * PAGE, PAGE, 0, "/bin/b");
	assert_int_equal(read_all(bench)->dsos.count, 2);
}

static void add_bpf_event(struct bench *bench, uint16_t type, uint32_t id)
{
	const struct {
		uint16_t type, flags;
		uint32_t id;
		uint8_t tag[8];
	} body = { type, 0, id, { 0 } };

	add(bench, PERF_BPF_EVENT, KERNEL, &body, sizeof(body));
}

enum { LOAD = 1, UNLOAD = 2, PROGRAM = 7, FUNCTIONS = 2, INFO = 128, DATA = 40 };

/* What perf keeps of a program of two functions, each of eight bytes (struct bpf_prog_info). */
struct program_section {
	uint32_t count, info_size, data_size, arrays, arrays_high;
	uint8_t info[INFO], data[DATA];
};

static void make_program(struct program_section *ret)
{
	const uint64_t addresses[FUNCTIONS] = { TEXT, TEXT + PAGE }, at_addresses = 16,
		       at_lengths = 32;
	const uint32_t id = PROGRAM, code_size = 16, lengths[FUNCTIONS] = { 8, 8 },
		       count = FUNCTIONS;

	*ret = (struct program_section){
		1, INFO, DATA, 1 << 0 | 1 << 3 | 1 << 4, 0, { 0 }, "abcdefghijklmnop"
	};
	memcpy(ret->info + 4, &id, 4);
	memcpy(ret->info + 16, &code_size, 4);
	memcpy(ret->info + 104, &count, 4);
	memcpy(ret->info + 108, &count, 4);
	memcpy(ret->info + 112, &at_addresses, 8);
	memcpy(ret->info + 120, &at_lengths, 8);
	memcpy(ret->data + at_addresses, addresses, sizeof(addresses));
	memcpy(ret->data + at_lengths, lengths, sizeof(lengths));
}

static void programs_are_loaded_once_and_unloaded_once(void **state)
{
	struct bench *bench = *state;
	struct program_section section;
	struct machine *host;

	make_program(&section);
	bench->data.features.payloads[PERF_FEATURE_BPF_PROG_INFO] =
		(struct bytes){ (const uint8_t *)&section, sizeof(section) };
	add_bpf_event(bench, UNLOAD, PROGRAM); /* before there is any */
	add_bpf_event(bench, LOAD, PROGRAM);
	add_bpf_event(bench, LOAD, PROGRAM + 1);
	add_bpf_event(bench, 3, PROGRAM);
	add_bpf_event(bench, UNLOAD, PROGRAM + 1);
	add_bpf_event(bench, LOAD, PROGRAM);
	bench->data.records.items[bench->data.records.count - 1].machine_pid = 5;
	add_bpf_event(bench, UNLOAD, PROGRAM);
	add_bpf_event(bench, LOAD, PROGRAM);
	add_bpf_event(bench, UNLOAD, PROGRAM);
	host = read_all(bench);
	assert_int_equal(host->pokes.list.count, 2 * FUNCTIONS);
	for (uint64_t time = 0; time < 100; time++) {
		const bool is_there = time >= 20 && time < 70;

		assert_int_equal(code_at(host, TEXT, time), is_there ? 'a' : '-');
		assert_int_equal(code_at(host, TEXT + PAGE + 7, time), is_there ? 'p' : '-');
		assert_int_equal(code_at(host, TEXT + 8, time), '-');
	}
	assert_int_equal(bench->machines.guest_count, 0);
}

static void damaged_programs_of_bpf_are_told(void **state)
{
	struct bench *bench = *state;

	bench->data.features.payloads[PERF_FEATURE_BPF_PROG_INFO] =
		(struct bytes){ (const uint8_t *)"\377\377\377\377", 4 };
	(void)read_all(bench);
	assert_non_null(strstr(machines_note(&bench->machines, 0), "BPF programs is damaged"));
}

static void a_long_line_of_forks_is_told(void **state)
{
	enum { LINE = 70 };
	struct perf_record records[LINE];
	struct bench *bench = *state;

	for (int32_t i = 0; i < LINE; i++) {
		const int32_t body[6] = { i + 1, i, i + 1, i };

		records[i] = record_make(PERF_FORK, 0, body, sizeof(body));
		assert_true(vec_push(&bench->data.records, records[i]));
	}
	add_map(bench, USER, 0, PAGE, PAGE, 0, "/bin/a");
	(void)read_all(bench);
	assert_non_null(strstr(machines_note(&bench->machines, 0), "1 map of processes not known"));
	for (size_t i = 0; i < LINE; i++)
		record_drop(&records[i]);
}

static void all_machines_of_a_timeless_recording_are_timeless(void **state)
{
	struct bench *bench = *state;

	bench->data.is_timeless = true;
	add_poke(bench, KERNEL, 'g')->machine_pid = 5;
	assert_true(read_all(bench)->is_timeless);
	assert_true(guest_of(bench, 5)->is_timeless);
	assert_int_equal(code_at(guest_of(bench, 5), TEXT, 0), 'g');
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(modules_have_perfs_names),
		WITH_FIXTURE(the_kernels_map_tells_where_a_symbol_was),
		WITH_FIXTURE(guests_kernels_are_found_by_id_or_by_pid),
		WITH_FIXTURE(guests_that_are_too_many_are_left_out_and_told),
		WITH_FIXTURE(pokes_are_of_the_kernel_that_the_record_names),
		WITH_FIXTURE(symbols_are_there_until_they_are_unregistered),
		WITH_FIXTURE(damaged_records_are_left_out_and_told),
		WITH_FIXTURE(one_damaged_record_is_one),
		WITH_FIXTURE(children_have_maps_and_threads_are_no_children),
		WITH_FIXTURE(spaces_are_known_before_what_is_mapped),
		WITH_FIXTURE(what_guests_processes_do_is_not_the_hosts),
		cmocka_unit_test(what_is_no_file_is_named_as_perf_names_it),
		WITH_FIXTURE(build_ids_are_those_of_the_hosts_programs),
		WITH_FIXTURE(the_kernels_build_id_is_in_the_table),
		WITH_FIXTURE(the_tables_vdso_is_not_that_of_32_bit_code),
		WITH_FIXTURE(a_build_id_of_the_map_goes_before_the_tables),
		WITH_FIXTURE(a_file_is_known_once),
		WITH_FIXTURE(programs_are_loaded_once_and_unloaded_once),
		WITH_FIXTURE(damaged_programs_of_bpf_are_told),
		WITH_FIXTURE(a_long_line_of_forks_is_told),
		WITH_FIXTURE(all_machines_of_a_timeless_recording_are_timeless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
