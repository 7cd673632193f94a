#include "decode/code/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/code/later_code.h"
#include "decode/code/machine_parts.h"
#include "decode/perf/perf_record.h"
#include "tests/elf_make.h"

enum { KERNEL = 1, USER = 2, GUEST = 4, TEXT_SIZE = 0x40, PID = 77 };

#define TEXT 0xffffffff81000000u
#define MODULE 0xffffffffc0000000u
#define LATER 0xffffffffc0100000u

/* A recording in a directory of its own, with records made by hand. */
struct fixture {
	char directory[40];
	struct perf_data data;
	struct machines machines;
	uint8_t bytes[4096];
	size_t used;
};

static void write_file(const struct fixture *fixture, const char *name, const void *bytes,
		       size_t size)
{
	char path[200];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	(void)fclose(file);
}

static void write_text(const struct fixture *fixture, const char *name, const char *text)
{
	write_file(fixture, name, text, strlen(text));
}

static void make_directory(const struct fixture *fixture, const char *name)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void write_kernel(const struct fixture *fixture, const char *directory, char fill)
{
	struct elf_make_segment segments[2] = { { TEXT, NULL, TEXT_SIZE },
						{ MODULE, "module code", 12 } };
	uint8_t text[TEXT_SIZE], kcore[1024];
	char name[100];

	make_directory(fixture, directory);
	memset(text, fill, sizeof(text));
	segments[0].bytes = text;
	(void)snprintf(name, sizeof(name), "%s/kcore", directory);
	write_file(fixture, name, kcore, elf_make(segments, 2, kcore));
	(void)snprintf(name, sizeof(name), "%s/kallsyms", directory);
	write_text(fixture, name,
		   "ffffffff81000000 T _text\nffffffff81000000 T startup_64\n"
		   "ffffffff81000020 t schedule\nffffffff82000000 D outside\n"
		   "ffffffffc0000004 t vmx_vcpu_run\t[kvm_intel]\n");
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	strcpy(fixture->directory, "/tmp/test_machine.XXXXXX");
	assert_non_null(mkdtemp(fixture->directory));
	fixture->data.directory = fixture->directory;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	char command[100];

	machines_free(&fixture->machines);
	free(fixture->data.records.items);
	(void)snprintf(command, sizeof(command), "rm -r %s", fixture->directory);
	assert_int_equal(system(command), 0);
	free(fixture);
	return 0;
}

static void load(struct fixture *fixture)
{
	struct machine_options options = { .build_id_dir = "/nowhere" };
	struct ptvm_error error = { 0 };

	assert_int_equal(machines_load(&fixture->data, &options, &fixture->machines, &error), 0);
}

/* Append a record: the fields given, then a text if there is one. */
static void record(struct fixture *fixture, uint64_t time, uint16_t type, uint16_t misc,
		   const void *fields, size_t size, const char *text)
{
	size_t text_size = text ? (strlen(text) + 8) & ~(size_t)7 : 0;
	struct perf_record *items = fixture->data.records.items, *added;
	uint8_t *to = fixture->bytes + fixture->used;
	uint16_t total = (uint16_t)((8 + size + text_size + 7) & ~(size_t)7);

	assert_true(fixture->used + total <= sizeof(fixture->bytes));
	fixture->used += total;
	memcpy(to, &(uint32_t){ type }, 4);
	memcpy(to + 4, &misc, 2);
	memcpy(to + 6, &total, 2);
	memcpy(to + 8, fields, size);
	if (text)
		memcpy(to + 8 + size, text, strlen(text));
	items = reallocarray(items, fixture->data.records.count + 1, sizeof(*items));
	assert_non_null(items);
	fixture->data.records.items = items;
	added = &items[fixture->data.records.count++];
	*added = (struct perf_record){ .data = to,
				       .time = time,
				       .type = type,
				       .misc = misc,
				       .size = total,
				       .pid = -1,
				       .tid = -1,
				       .cpu = -1 };
}

static void mmap_record(struct fixture *fixture, uint64_t time, uint16_t misc, int32_t pid,
			uint64_t start, uint64_t size, uint64_t page_offset, const char *name)
{
	struct {
		int32_t pid, tid;
		uint64_t start, size, page_offset;
	} fields = { pid, pid, start, size, page_offset };

	record(fixture, time, PERF_MMAP, misc, &fields, sizeof(fields), name);
}

static void fork_record(struct fixture *fixture, uint64_t time, int32_t pid, int32_t parent)
{
	struct {
		int32_t pid, parent, tid, parent_tid;
		uint64_t time;
	} fields = { pid, parent, pid, parent, time };

	record(fixture, time, PERF_FORK, 0, &fields, sizeof(fields), NULL);
}

static void exec_record(struct fixture *fixture, uint64_t time, int32_t pid)
{
	int32_t fields[2] = { pid, pid };

	record(fixture, time, PERF_COMM, PERF_MISC_EXEC, fields, sizeof(fields), "sh");
}

static void poke_record(struct fixture *fixture, uint64_t time, uint64_t address,
			const char *old_bytes, const char *new_bytes)
{
	uint8_t fields[12 + 32] = { 0 };
	uint16_t old_size = (uint16_t)strlen(old_bytes), new_size = (uint16_t)strlen(new_bytes);

	memcpy(fields, &address, 8);
	memcpy(fields + 8, &old_size, 2);
	memcpy(fields + 10, &new_size, 2);
	memcpy(fields + 12, old_bytes, old_size);
	memcpy(fields + 12 + old_size, new_bytes, new_size);
	record(fixture, time, PERF_TEXT_POKE, KERNEL, fields, 12u + old_size + new_size, NULL);
}

static void ksymbol_record(struct fixture *fixture, uint64_t time, uint64_t address, uint32_t size,
			   uint16_t flags, const char *name)
{
	struct {
		uint64_t address;
		uint32_t size;
		uint16_t type, flags;
	} fields = { address, size, 1, flags };

	record(fixture, time, PERF_KSYMBOL, KERNEL, &fields, sizeof(fields), name);
}

/* "BYTE..LEFT" at an address, "-" where there is no code. */
static const char *code(struct machine *machine, int32_t pid, uint64_t address, uint64_t time)
{
	static char text[40];
	struct code_view view;
	int r = machine_code(machine, pid, address, time, &view);

	assert_true(view.from <= time && time < view.to);
	if (r)
		return "-";
	(void)snprintf(text, sizeof(text), "%c..%zu", view.data[0], view.left);
	return text;
}

/* "name+offset (dso)" as perf prints it. */
static const char *symbol(struct machine *machine, int32_t pid, uint64_t address, uint64_t time)
{
	static char text[200];
	struct symbol_view view;

	machine_symbol(machine, pid, address, time, &view);
	(void)snprintf(text, sizeof(text), "%s+0x%lx (%s)", view.name ? view.name : "?",
		       (unsigned long)view.offset, view.dso ? view.dso : "?");
	return text;
}

static void kernel_and_modules_come_from_kcore_and_kallsyms(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host;

	write_kernel(fixture, "kcore_dir", 'k');
	load(fixture);
	host = fixture->machines.host;
	assert_string_equal(code(host, 1, TEXT + 0x10, 5), "k..48");
	assert_string_equal(code(host, 1, TEXT + TEXT_SIZE, 5), "-");
	assert_string_equal(symbol(host, 1, TEXT + 0x1f, 5), "startup_64+0x1f ([kernel.kallsyms])");
	assert_string_equal(symbol(host, 1, TEXT + 0x21, 5), "schedule+0x1 ([kernel.kallsyms])");
	assert_string_equal(symbol(host, 1, TEXT + TEXT_SIZE, 5), "?+0x0 (?)");
	assert_string_equal(symbol(host, 1, MODULE + 1, 5), "?+0x0 ([kernel.kallsyms])");
	assert_string_equal(symbol(host, 1, MODULE + 5, 5), "vmx_vcpu_run+0x1 ([kernel.kallsyms])");
	assert_true(machine_symbol_address(host, "_text") == TEXT);
	assert_null(machines_note(&fixture->machines, 0));
}

static void each_guest_has_its_own_kernel(void **state)
{
	struct fixture *fixture = *state;
	struct machine *guest;

	write_kernel(fixture, "kcore_dir", 'k');
	write_kernel(fixture, "kcore_dir__123", 'g');
	load(fixture);
	guest = machines_guest(&fixture->machines, 123);
	assert_non_null(guest);
	assert_ptr_equal(machines_guest(&fixture->machines, -1), guest);
	assert_null(machines_guest(&fixture->machines, 9));
	assert_string_equal(code(guest, 1, TEXT, 5), "g..64");
	assert_string_equal(symbol(guest, 1, TEXT + 0x20, 5),
			    "schedule+0x0 ([guest.kernel.kallsyms.123])");
	assert_string_equal(code(guest, 1, 0x1000, 5), "-");
}

static void code_that_came_later_fills_gaps_only(void **state)
{
	enum { PAGE = 4096 };
	static uint8_t pages[3 * PAGE], kcore[4 * PAGE];
	const struct elf_make_segment segment = { LATER, pages, 2 * PAGE };
	const struct elf_make_segment both[] = { segment, { TEXT, pages, PAGE } };
	struct fixture *fixture = *state;

	memset(pages, 'l', sizeof(pages));
	write_kernel(fixture, "kcore_dir", 'k');
	write_kernel(fixture, "kcore_dir__123", 'g');
	write_file(fixture, "data.ptvm-kcore", kcore, elf_make(both, 2, kcore));
	write_text(fixture, "data.ptvm-kcore__123", "not a kcore");
	write_text(fixture, "data.ptvm-kallsyms", "ffffffffc0100010 t loaded\t[late]\n");
	load(fixture);
	assert_string_equal(code(fixture->machines.host, 1, LATER + PAGE - 1, 5), "l..4097");
	assert_string_equal(code(fixture->machines.host, 1, TEXT, 5), "k..64");
	assert_false(machine_has_later_code(fixture->machines.host));
	assert_string_equal(symbol(fixture->machines.host, 1, LATER, 5),
			    "?+0x0 ([kernel.kallsyms])");
	assert_string_equal(symbol(fixture->machines.host, 1, LATER + 0x12, 5),
			    "loaded+0x2 ([kernel.kallsyms])");
	assert_string_equal(code(machines_guest(&fixture->machines, 123), 1, LATER, 5), "-");
	assert_non_null(strstr(machines_note(&fixture->machines, 0), "data.ptvm-kcore__123"));
}

/* One page of code, in a file of that name. */
static void write_page(const struct fixture *fixture, const char *name, const uint8_t *page)
{
	static uint8_t kcore[2 * 4096];
	const struct elf_make_segment segment = { TEXT, page, 4096 };

	write_file(fixture, name, kcore, elf_make(&segment, 1, kcore));
}

static void what_a_later_copy_has_otherwise_is_known(void **state)
{
	static uint8_t page[4096] = "before";
	struct fixture *fixture = *state;
	struct machine *host;
	struct bytes bytes;

	write_kernel(fixture, "kcore_dir", 'k');
	write_page(fixture, "kcore_dir/kcore", page);
	memcpy(page + 8, "after", 5);
	memcpy(page + 100, "poked", 5);
	write_page(fixture, "data.ptvm-kcore", page);
	poke_record(fixture, 100, TEXT + 100, "old", "new");
	load(fixture);
	host = fixture->machines.host;
	assert_string_equal(code(host, 1, TEXT, 5), "b..100");
	assert_true(machine_has_later_code(host));
	assert_int_equal(machine_later_code(host, TEXT, 8, 5).size, 0);
	bytes = machine_later_code(host, TEXT + 6, 5, 5);
	assert_int_equal(bytes.size, 4096 - 6);
	assert_memory_equal(bytes.data, "\0\0after", 7);
	/* records tell when that was */
	assert_int_equal(machine_later_code(host, TEXT + 100, 3, 5).size, 0);
	assert_int_equal(machine_later_code(host, TEXT + 100, 3, 200).size, 0);
}

static void what_was_replaced_is_what_a_later_copy_has_from_then_on(void **state)
{
	enum { PAGE = 4096 };
	static uint8_t pages[2 * PAGE], kcore[3 * PAGE];
	const struct elf_make_segment segment = { TEXT, pages, 2 * PAGE };
	struct fixture *fixture = *state;
	struct later_range *range;
	struct code_view view;
	struct machine *host;
	size_t count;

	write_kernel(fixture, "kcore_dir", 'k');
	memset(pages, 'e', sizeof(pages));
	write_file(fixture, "kcore_dir/kcore", kcore, elf_make(&segment, 1, kcore));
	write_text(fixture, "kcore_dir/kallsyms",
		   "ffffffff81000000 T _text\n"
		   "ffffffff81001000 t old_function\t[old]\n");
	memset(pages + PAGE, 'l', PAGE);
	write_file(fixture, "data.ptvm-kcore", kcore, elf_make(&segment, 1, kcore));
	write_text(fixture, "data.ptvm-kallsyms", "ffffffff81001008 t new_function\t[new]\n");
	load(fixture);
	host = fixture->machines.host;
	range = machine_replaced(host, &count);
	assert_int_equal(count, 1);
	assert_true(range->start == TEXT + PAGE && range->end == TEXT + 2 * PAGE);
	assert_string_equal(code(host, 1, TEXT + PAGE, 50), "e..4096");
	range->since = 50;
	assert_string_equal(code(host, 1, TEXT, 50), "e..4096");
	assert_string_equal(code(host, 1, TEXT + PAGE, 49), "e..4096");
	assert_string_equal(code(host, 1, TEXT + PAGE, 50), "l..4096");
	assert_int_equal(machine_code(host, 1, TEXT + PAGE, 49, &view), 0);
	assert_true(view.from == 0 && view.to == 50);
	assert_int_equal(machine_code(host, 1, TEXT + PAGE, 70, &view), 0);
	assert_true(view.from == 50 && view.to == UINT64_MAX);
	assert_string_equal(machine_module(host, TEXT + PAGE + 9, 49), "[old]");
	assert_string_equal(machine_module(host, TEXT + PAGE + 9, 50), "[new]");
	assert_null(machine_module(host, TEXT + PAGE + 5, 50));
	assert_string_equal(symbol(host, 1, TEXT + PAGE + 5, 50), "?+0x0 ([kernel.kallsyms])");
	assert_string_equal(symbol(host, 1, TEXT + PAGE + 9, 50),
			    "new_function+0x1 ([kernel.kallsyms])");
}

static void a_default_guest_is_given_by_its_kallsyms(void **state)
{
	struct fixture *fixture = *state;
	struct machine_options options = { 0 };
	struct ptvm_error error = { 0 };
	struct machine *guest;
	char path[100];

	write_kernel(fixture, "elsewhere", 'g');
	(void)snprintf(path, sizeof(path), "%s/elsewhere/kallsyms", fixture->directory);
	options.guest_kallsyms = path;
	assert_int_equal(machines_load(&fixture->data, &options, &fixture->machines, &error), 0);
	guest = machines_guest(&fixture->machines, 123);
	assert_string_equal(code(guest, 1, TEXT, 5), "g..64");
	assert_string_equal(symbol(guest, 1, TEXT, 5), "startup_64+0x0 ([guest.kernel.kallsyms])");
	assert_null(machines_note(&fixture->machines, 0));
	assert_string_equal(code(fixture->machines.host, 1, TEXT, 5), "-");
	assert_non_null(strstr(machines_note(&fixture->machines, 0), "[kernel.kallsyms]"));
}

static void a_file_the_user_named_must_be_there(void **state)
{
	struct fixture *fixture = *state;
	struct machine_options options = { .guest_kallsyms = "/nowhere/kallsyms" };
	struct ptvm_error error = { 0 };

	assert_int_equal(machines_load(&fixture->data, &options, &fixture->machines, &error),
			 -PTVM_SYSTEM);
	assert_non_null(strstr(error.message, "/nowhere/kallsyms"));
}

static void without_kcore_names_are_those_of_maps(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host;

	write_kernel(fixture, "kcore_dir", 'k');
	write_text(fixture, "kcore_dir/kcore", "not a kcore");
	mmap_record(fixture, 0, KERNEL, -1, TEXT, 0x1000, TEXT, "[kernel.kallsyms]_text");
	mmap_record(fixture, 0, KERNEL, -1, MODULE, 0x1000, 0, "/lib/modules/x/kvm-intel.ko.xz");
	load(fixture);
	host = fixture->machines.host;
	assert_string_equal(code(host, 1, TEXT, 5), "-");
	assert_string_equal(symbol(host, 1, TEXT + 0x21, 5), "schedule+0x1 ([kernel.kallsyms])");
	assert_string_equal(symbol(host, 1, MODULE + 4, 5), "vmx_vcpu_run+0x0 ([kvm_intel])");
	assert_non_null(machines_note(&fixture->machines, 0));
}

static void files_of_another_boot_are_not_taken_for_code(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host;

	write_kernel(fixture, "kcore_dir", 'k');
	mmap_record(fixture, 0, KERNEL, -1, TEXT + 0x200000, 0x1000, TEXT + 0x200000,
		    "[kernel.kallsyms]_text");
	load(fixture);
	host = fixture->machines.host;
	assert_string_equal(code(host, 1, TEXT, 5), "-");
	assert_string_equal(symbol(host, 1, TEXT + 0x200021, 5),
			    "schedule+0x1 ([kernel.kallsyms])");
	assert_non_null(machines_note(&fixture->machines, 1));
}

static void a_poke_changes_code_from_its_time_on(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host;
	struct code_view view;

	write_kernel(fixture, "kcore_dir", 'k');
	poke_record(fixture, 100, TEXT + 0x10, "OLD", "new");
	poke_record(fixture, 200, TEXT + 0x10, "new", "NEWER");
	load(fixture);
	host = fixture->machines.host;
	assert_string_equal(code(host, 1, TEXT, 50), "k..16");
	assert_string_equal(code(host, 1, TEXT + 0x10, 50), "O..3");
	assert_string_equal(code(host, 1, TEXT + 0x10, 100), "n..3");
	assert_string_equal(code(host, 1, TEXT + 0x11, 300), "E..2");
	assert_string_equal(code(host, 1, TEXT + 0x13, 150), "k..2");
	assert_string_equal(code(host, 1, TEXT + 0x13, 250), "E..2");
	assert_int_equal(machine_code(host, 1, TEXT + 0x10, 150, &view), 0);
	assert_true(view.from == 100 && view.to == 200);
}

static void a_poke_can_add_text_where_there_was_none(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host;

	poke_record(fixture, 100, MODULE, "", "jit");
	poke_record(fixture, 200, MODULE, "jit", "");
	load(fixture);
	host = fixture->machines.host;
	assert_string_equal(code(host, 1, MODULE + 1, 99), "-");
	assert_string_equal(code(host, 1, MODULE + 1, 100), "i..2");
	assert_string_equal(code(host, 1, MODULE + 1, 200), "-");
}

static void run_time_symbols_come_and_go(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host;

	write_kernel(fixture, "kcore_dir", 'k');
	ksymbol_record(fixture, 100, MODULE + 0x1000, 0x80, 0, "bpf_prog_1_x");
	ksymbol_record(fixture, 200, MODULE + 0x1000, 0x80, 1, "bpf_prog_1_x");
	load(fixture);
	host = fixture->machines.host;
	assert_string_equal(symbol(host, 1, MODULE + 0x1004, 99), "?+0x0 (?)");
	assert_string_equal(symbol(host, 1, MODULE + 0x1004, 100),
			    "bpf_prog_1_x+0x4 (bpf_prog_1_x)");
	assert_string_equal(symbol(host, 1, MODULE + 0x1080, 100), "?+0x0 (?)");
	assert_string_equal(symbol(host, 1, MODULE + 0x1004, 200), "?+0x0 (?)");
}

static void a_child_has_its_parents_maps_until_it_execs(void **state)
{
	struct fixture *fixture = *state;
	char path[100];
	struct machine *host;
	struct code_view view;

	write_text(fixture, "program", "0123456789");
	(void)snprintf(path, sizeof(path), "%s/program", fixture->directory);
	mmap_record(fixture, 10, USER, PID, 0x1000, 0x1000, 2, path);
	fork_record(fixture, 20, PID + 1, PID);
	mmap_record(fixture, 30, USER, PID, 0x1000, 4, 6, path);
	exec_record(fixture, 40, PID + 1);
	load(fixture);
	host = fixture->machines.host;
	assert_string_equal(code(host, PID, 0x1000, 9), "-");
	assert_string_equal(code(host, PID, 0x1001, 10), "3..3");
	assert_string_equal(code(host, PID, 0x1004, 10), "6..4");
	assert_string_equal(code(host, PID, 0x1001, 30), "7..3");
	assert_string_equal(code(host, PID + 1, 0x1001, 15), "-");
	assert_string_equal(code(host, PID + 1, 0x1001, 35), "3..3");
	assert_int_equal(machine_code(host, PID + 1, 0x1001, 35, &view), 0);
	assert_true(view.from == 20 && view.to == 40);
	assert_string_equal(code(host, PID + 1, 0x1001, 40), "-");
	assert_string_equal(code(host, PID + 2, 0x1001, 40), "-");
	assert_int_equal(machine_code(host, PID, 0x1000, 9, &view), -PTVM_NO_CODE);
	assert_true(view.from == 0 && view.to == 10);
	assert_int_equal(machine_code(host, PID + 1, 0x1001, 15, &view), -PTVM_NO_CODE);
	assert_true(view.from == 0 && view.to == 20);
}

static void a_file_with_another_build_id_is_not_used(void **state)
{
	struct fixture *fixture = *state;
	struct perf_build_id id = { .cpumode = USER, .pid = -1, .id = { { 1, 2, 3 }, 20 } };
	char path[100];

	write_text(fixture, "program", "0123456789");
	(void)snprintf(path, sizeof(path), "%s/program", fixture->directory);
	id.filename = path;
	fixture->data.build_ids.items = &id;
	fixture->data.build_ids.count = 1;
	mmap_record(fixture, 10, USER, PID, 0x1000, 0x1000, 0, path);
	load(fixture);
	assert_string_equal(code(fixture->machines.host, PID, 0x1000, 10), "-");
	machines_note_files(&fixture->machines);
	assert_non_null(strstr(machines_note(&fixture->machines, 0), "build id"));
}

static void a_file_that_was_replaced_is_another_one(void **state)
{
	const struct build_id none = { .size = 0 }, old = { { 1 }, 20 }, new = { { 2 }, 20 };
	struct fixture *fixture = *state;
	struct machine *host;
	const struct dso *dso;

	load(fixture);
	host = fixture->machines.host;
	dso = machine_dso(host, "libc.so", &old);
	assert_non_null(dso);
	assert_ptr_equal(machine_dso(host, "libc.so", &old), dso);
	assert_ptr_not_equal(machine_dso(host, "libc.so", &new), dso);
	assert_ptr_not_equal(machine_dso(host, "libc.so", &none), dso);
	assert_ptr_not_equal(machine_dso(host, "libm.so", &old), dso);
}

static void what_is_no_file_has_a_name_and_no_code(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host;

	mmap_record(fixture, 10, USER, PID, 0x1000, 0x1000, 0, "//anon");
	mmap_record(fixture, 10, USER, PID, 0x2000, 0x1000, 0, "/dev/null");
	load(fixture);
	host = fixture->machines.host;
	assert_string_equal(code(host, PID, 0x1000, 10), "-");
	assert_string_equal(symbol(host, PID, 0x1000, 10), "?+0x0 (/tmp/perf-77.map)");
	assert_string_equal(code(host, PID, 0x2000, 10), "-");
	machines_note_files(&fixture->machines);
	assert_non_null(strstr(machines_note(&fixture->machines, 0), "/dev/null"));
	assert_null(machines_note(&fixture->machines, 1));
}

/* Which thread needs which of them first is chance. */
static void files_that_are_not_there_are_told_in_the_recordings_order(void **state)
{
	struct fixture *fixture = *state;

	mmap_record(fixture, 10, USER, PID, 0x1000, 0x1000, 0, "/nowhere/first");
	mmap_record(fixture, 10, USER, PID, 0x2000, 0x1000, 0, "/nowhere/second");
	mmap_record(fixture, 10, USER, PID, 0x3000, 0x1000, 0, "/nowhere/never");
	load(fixture);
	assert_string_equal(code(fixture->machines.host, PID, 0x2000, 10), "-");
	assert_string_equal(code(fixture->machines.host, PID, 0x1000, 10), "-");
	machines_note_files(&fixture->machines);
	assert_non_null(strstr(machines_note(&fixture->machines, 0), "/nowhere/first"));
	assert_non_null(strstr(machines_note(&fixture->machines, 1), "/nowhere/second"));
	assert_null(machines_note(&fixture->machines, 2));
}

static void an_address_is_shown_as_one_in_its_file(void **state)
{
	struct fixture *fixture = *state;
	struct machine *host;

	mmap_record(fixture, 10, USER, PID, 0x1000, 0x1000, 0x5000, "/no/file");
	mmap_record(fixture, 20, USER, PID, 0x2000, 0x1000, 0x6000, "//anon");
	load(fixture);
	host = fixture->machines.host;
	assert_int_equal(machine_file_address(host, PID, 0x1234, 10), 0x5234);
	assert_int_equal(machine_file_address(host, PID, 0x1234, 9), 0x1234);
	assert_int_equal(machine_file_address(host, PID, 0x2234, 20), 0x2234);
	assert_int_equal(machine_file_address(host, PID, 0x3234, 20), 0x3234);
	assert_int_equal(machine_file_address(host, PID, TEXT, 20), TEXT);
}

static void in_a_timeless_recording_the_last_state_holds(void **state)
{
	struct fixture *fixture = *state;
	struct code_view view;

	write_kernel(fixture, "kcore_dir", 'k');
	poke_record(fixture, 100, TEXT, "OLD", "new");
	fixture->data.is_timeless = true;
	load(fixture);
	assert_int_equal(machine_code(fixture->machines.host, 1, TEXT, 0, &view), 0);
	assert_int_equal(view.data[0], 'n');
	assert_true(view.from == 0 && view.to == UINT64_MAX);
}

static void files_by_hand_serve_every_process(void **state)
{
	struct fixture *fixture = *state;
	const struct elf_make_segment segment = { 0x400000, "elf code", 8 };
	struct machine *machine = machine_new(0, false);
	struct ptvm_error error = { 0 };
	uint8_t elf[1024];
	char path[100];

	assert_non_null(machine);
	fixture->machines.host = machine;
	write_file(fixture, "elf", elf, elf_make(&segment, 1, elf));
	write_text(fixture, "raw", "0123456789");
	(void)snprintf(path, sizeof(path), "%s/elf", fixture->directory);
	assert_int_equal(machine_add_elf(machine, path, TEXT - 0x400000, &error), 0);
	assert_string_equal(code(machine, 5, TEXT + 1, 0), "l..7");
	assert_null(strstr(symbol(machine, 5, TEXT, 0), "kernel"));
	(void)snprintf(path, sizeof(path), "%s/raw", fixture->directory);
	assert_int_equal(machine_add_raw(machine, path, 2, 6, 0x1000, &error), 0);
	assert_int_equal(machine_add_raw(machine, path, 8, 0, 0x2000, &error), 0);
	assert_string_equal(code(machine, 5, 0x1001, 0), "3..3");
	assert_string_equal(code(machine, 6, 0x2000, 0), "8..2");
	assert_int_equal(machine_add_raw(machine, path, 8, 11, 0x2000, &error), -PTVM_BAD_INPUT);
	error = (struct ptvm_error){ 0 };
	assert_int_equal(machine_add_elf(machine, path, 0, &error), -PTVM_BAD_INPUT);
}

int main(void)
{
#define with_fixture(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		with_fixture(kernel_and_modules_come_from_kcore_and_kallsyms),
		with_fixture(code_that_came_later_fills_gaps_only),
		with_fixture(what_a_later_copy_has_otherwise_is_known),
		with_fixture(what_was_replaced_is_what_a_later_copy_has_from_then_on),
		with_fixture(each_guest_has_its_own_kernel),
		with_fixture(a_default_guest_is_given_by_its_kallsyms),
		with_fixture(a_file_the_user_named_must_be_there),
		with_fixture(without_kcore_names_are_those_of_maps),
		with_fixture(files_of_another_boot_are_not_taken_for_code),
		with_fixture(a_poke_changes_code_from_its_time_on),
		with_fixture(a_poke_can_add_text_where_there_was_none),
		with_fixture(run_time_symbols_come_and_go),
		with_fixture(a_child_has_its_parents_maps_until_it_execs),
		with_fixture(a_file_with_another_build_id_is_not_used),
		with_fixture(a_file_that_was_replaced_is_another_one),
		with_fixture(what_is_no_file_has_a_name_and_no_code),
		with_fixture(files_that_are_not_there_are_told_in_the_recordings_order),
		with_fixture(an_address_is_shown_as_one_in_its_file),
		with_fixture(in_a_timeless_recording_the_last_state_holds),
		with_fixture(files_by_hand_serve_every_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
