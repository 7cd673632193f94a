#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/vm/vm_search.h"
#include "tests/fake_linux.h"
#include "tests/fake_tree.h"

static const uint64_t mib = 1 << 20, gib = UINT64_C(1) << 30;

enum { PID = 7 };

/* A process that runs a machine, whose memory is our own: what is mapped here is its RAM. */
struct fixture {
	struct fake_linux guest;
	struct fake_tree tree;
	struct vm_memory memory;
	struct {
		uint8_t *data;
		size_t size;
	} mapped[4];
	size_t count;
	char maps[512];
};

static int set_up(void **state)
{
	static const char *const files[] = { "mem", "pagemap" };
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	char path[32];

	assert_non_null(fixture);
	fake_linux_init(&fixture->guest, false);
	fake_tree_init(&fixture->tree);
	fake_tree_process(&fixture->tree, PID, "qemu-system-x86\n", "qemu\0-accel\0kvm",
			  sizeof("qemu\0-accel\0kvm"));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/self/%s", files[i]);
		fake_tree_link(&fixture->tree, path, "proc/%d/%s", PID, files[i]);
	}
	fixture->memory.file = -1;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	vm_memory_close(&fixture->memory);
	for (size_t i = 0; i < fixture->count; i++)
		(void)munmap(fixture->mapped[i].data, fixture->mapped[i].size);
	fake_tree_deinit(&fixture->tree);
	fake_linux_deinit(&fixture->guest);
	free(fixture);
	return 0;
}

/* Map memory, which costs nothing where it is not touched. */
static uint8_t *map(struct fixture *fixture, size_t size)
{
	uint8_t *data = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const uint64_t address = (uint64_t)(uintptr_t)data;

	assert_ptr_not_equal(data, MAP_FAILED);
	fixture->mapped[fixture->count].data = data;
	fixture->mapped[fixture->count++].size = size;
	(void)snprintf(fixture->maps + strlen(fixture->maps),
		       sizeof(fixture->maps) - strlen(fixture->maps),
		       "%lx-%lx rw-p 00000000 00:00 0\n", address, address + size);
	fake_tree_file(&fixture->tree, fixture->maps, "proc/%d/maps", PID);
	return data;
}

/* The guest as it is now, at the beginning of its RAM. */
static void put_guest(const struct fixture *fixture, uint8_t *to)
{
	memcpy(to, fixture->guest.memory.data, fixture->guest.memory.size);
}

static int search(struct fixture *fixture, struct ptvm_error *error)
{
	return vm_search_open(&fixture->tree.roots, PID, &fixture->memory, error);
}

static void assert_fails(struct fixture *fixture, int code, const char *message)
{
	struct ptvm_error error = { 0 };

	assert_int_equal(search(fixture, &error), code);
	assert_non_null(strstr(error.message, message));
}

static void assert_range(const struct fixture *fixture, size_t index, uint64_t first, uint64_t last,
			 const uint8_t *data)
{
	const struct vm_memory_range *range = &fixture->memory.ranges[index];

	assert_int_equal(range->guest.first, first);
	assert_int_equal(range->guest.last, last);
	assert_int_equal(range->address, (uint64_t)(uintptr_t)data);
}

static void a_guest_is_found_among_other_memory(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t middle = FAKE_LINUX_START + 0x123;
	uint8_t *ram, *text;
	struct guest_memory reader;
	uint8_t byte;

	(void)map(fixture, 32 * mib);
	ram = map(fixture, 16 * mib);
	put_guest(fixture, ram);
	assert_int_equal(search(fixture, NULL), 0);
	assert_int_equal(fixture->memory.count, 1);
	assert_range(fixture, 0, 0, 16 * mib - 1, ram);
	assert_int_equal(fixture->memory.root_count, 1);
	assert_int_equal(fixture->memory.page_roots[0].cr3, fixture->guest.memory.root.cr3);
	reader = vm_memory_reader(&fixture->memory);
	text = fixture->guest.text + 0x123;
	assert_int_equal(reader.read(reader.context, (uint64_t)(text - fixture->guest.memory.data),
				     &byte, 1, NULL),
			 0);
	assert_int_equal(byte, fake_linux_byte(middle));
}

/* A GiB each from 0 and from 4 GiB on. */
static void map_gibs(struct fixture *fixture, uint64_t low, uint64_t high)
{
	for (uint64_t at = 0; at < 4 + high; at = at + 1 == low ? 4 : at + 1)
		*fake_memory_entry(&fixture->guest.memory, 0xffff888000000000 + at * gib, 3) =
			at * gib | FAKE_MEMORY_LARGE | 1;
}

static void ram_above_4_gib_may_be_a_mapping_of_its_own(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *low = map(fixture, 3 * gib), *high = map(fixture, 5 * gib);

	map_gibs(fixture, 3, 5);
	put_guest(fixture, low);
	assert_int_equal(search(fixture, NULL), 0);
	assert_int_equal(fixture->memory.count, 2);
	assert_range(fixture, 0, 0, 3 * gib - 1, low);
	assert_range(fixture, 1, 4 * gib, 9 * gib - 1, high);
}

static void two_places_for_it_are_one_too_many(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *low = map(fixture, 3 * gib);

	(void)map(fixture, 5 * gib);
	(void)map(fixture, 5 * gib);
	map_gibs(fixture, 3, 5);
	put_guest(fixture, low);
	assert_fails(fixture, -PTVM_INCONSISTENT, "RAM is cannot be told");
}

static void ram_that_was_plugged_in_is_not_taken_for_nothing(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *ram = map(fixture, 3 * gib);
	struct ptvm_error error = { 0 };
	struct guest_memory reader;
	uint8_t byte;

	map_gibs(fixture, 2, 1);
	*fake_memory_entry(&fixture->guest.memory, 0xffff888000000000 + 64 * gib, 3) =
		64 * gib | FAKE_MEMORY_LARGE | 1;
	put_guest(fixture, ram);
	assert_int_equal(search(fixture, NULL), 0);
	reader = vm_memory_reader(&fixture->memory);
	assert_int_equal(reader.read(reader.context, 64 * gib, &byte, 1, &error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, "plugged in (at 0x1000000000)"));
	assert_int_equal(reader.read(reader.context, 65 * gib, &byte, 1, NULL), -PTVM_NOT_FOUND);
	assert_int_equal(reader.read(reader.context, 3 * gib, &byte, 1, NULL), -PTVM_NOT_FOUND);
}

static void without_vmcoreinfo_it_is_said(void **state)
{
	struct fixture *fixture = *state;

	(void)map(fixture, 16 * mib);
	assert_fails(fixture, -PTVM_NOT_FOUND, "CONFIG_VMCORE_INFO");
}

static void vmcoreinfo_alone_is_no_kernel(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *ram = map(fixture, 16 * mib);

	memcpy(ram + mib, fixture->guest.vmcoreinfo, FAKE_MEMORY_PAGE);
	assert_fails(fixture, -PTVM_NOT_FOUND, "leads from it to the kernel");
}

/* A program in the guest wrote a VMCOREINFO of its own, and the kernel's is gone. */
static void a_kernel_must_lead_back_to_what_it_was_found_by(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *ram = map(fixture, 16 * mib);

	memcpy(ram + 8 * mib, fixture->guest.vmcoreinfo, FAKE_MEMORY_PAGE);
	memset(fixture->guest.vmcoreinfo, 0, FAKE_MEMORY_PAGE);
	put_guest(fixture, ram);
	assert_fails(fixture, -PTVM_NOT_FOUND, "leads from it to the kernel");
}

static void a_kernel_without_symbols_is_called_that(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *ram = map(fixture, 16 * mib);

	*fake_memory_entry(&fixture->guest.memory, FAKE_LINUX_START + 0x20000, 1) = 0;
	put_guest(fixture, ram);
	assert_fails(fixture, -PTVM_NOT_FOUND, "no tables of symbols");
}

static uint64_t *jiffies; /* of a guest that runs; NULL: none does */

/* In the place of the C library's. The guest's time goes on while the search waits for it: with a
 * thread instead, the guest might have no turn on a machine that is busy. */
int nanosleep(const struct timespec *pause, struct timespec *left)
{
	if (jiffies)
		++*jiffies;
	return 0;
}

/* Puts the remains of an earlier boot into RAM, beside the kernel that runs; returns the latter's
 * clock. */
static uint64_t *put_two_boots(struct fixture *fixture)
{
	uint8_t *ram = map(fixture, 16 * mib);

	fake_linux_boot_again(&fixture->guest);
	put_guest(fixture, ram);
	return (uint64_t *)(ram + (fixture->guest.clock - fixture->guest.memory.data));
}

static void of_two_boots_the_one_whose_time_goes_on_is_taken(void **state)
{
	struct fixture *fixture = *state;

	jiffies = put_two_boots(fixture);
	assert_int_equal(search(fixture, NULL), 0);
	jiffies = NULL;
	assert_int_equal(fixture->memory.page_roots[0].cr3, fixture->guest.memory.root.cr3);
}

static void of_two_boots_that_stand_still_none_is_taken(void **state)
{
	struct fixture *fixture = *state;

	(void)put_two_boots(fixture);
	assert_fails(fixture, -PTVM_INCONSISTENT, "is it paused?");
}

static void a_page_that_cannot_be_read_is_passed_over(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *ram = map(fixture, 16 * mib), *gone = map(fixture, 16 * mib);

	put_guest(fixture, ram);
	memset(gone, 1, mib);
	assert_int_equal(munmap(gone, 16 * mib), 0);
	fixture->count--;
	assert_int_equal(search(fixture, NULL), 0);
}

static void what_runs_no_machine_is_refused(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(vm_search_open(&fixture->tree.roots, 8, &fixture->memory, NULL),
			 -PTVM_NOT_FOUND);
}

static void hidden_memory_is_not_searched(void **state)
{
	static const char arguments[] = "qemu\0-accel\0kvm\0-object\0sev-guest,id=s";
	struct fixture *fixture = *state;

	fake_tree_process(&fixture->tree, PID, "qemu-system-x86\n", arguments, sizeof(arguments));
	assert_fails(fixture, -PTVM_BAD_USAGE, "hidden from the host");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_guest_is_found_among_other_memory),
		TEST(ram_above_4_gib_may_be_a_mapping_of_its_own),
		TEST(two_places_for_it_are_one_too_many),
		TEST(ram_that_was_plugged_in_is_not_taken_for_nothing),
		TEST(without_vmcoreinfo_it_is_said),
		TEST(vmcoreinfo_alone_is_no_kernel),
		TEST(a_kernel_must_lead_back_to_what_it_was_found_by),
		TEST(a_kernel_without_symbols_is_called_that),
		TEST(of_two_boots_the_one_whose_time_goes_on_is_taken),
		TEST(of_two_boots_that_stand_still_none_is_taken),
		TEST(a_page_that_cannot_be_read_is_passed_over),
		TEST(what_runs_no_machine_is_refused),
		TEST(hidden_memory_is_not_searched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
