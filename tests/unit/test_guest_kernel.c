#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/guest_kernel.h"
#include "tests/fake_linux.h"

struct fixture {
	struct fake_linux guest;
	struct guest_kernel kernel;
};

static char five_levels[] = "page tables have 5 levels";

/* The guest's page tables have 5 levels where the test's initial state is `five_levels`. */
static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fake_linux_init(&fixture->guest, *state != NULL);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	guest_kernel_free(&fixture->kernel);
	fake_linux_deinit(&fixture->guest);
	free(fixture);
	return 0;
}

static int find(struct fixture *fixture, const uint64_t *cr3s, size_t count,
		struct ptvm_error *error)
{
	struct page_root roots[8];

	for (size_t i = 0; i < count; i++)
		roots[i] = (struct page_root){ cr3s[i], fixture->guest.memory.root.is_5_level };
	return guest_kernel_find(&fixture->guest.memory.reader, roots, count, &fixture->kernel,
				 error);
}

static void assert_whole(const struct fixture *fixture)
{
	assert_int_equal(fixture->kernel.image.address, FAKE_LINUX_START);
	assert_int_equal(fixture->kernel.symbols.count, FAKE_LINUX_SYMBOLS);
	assert_int_equal(guest_kernel_symbol(&fixture->kernel, "_etext"),
			 FAKE_LINUX_START + FAKE_LINUX_TEXT_BYTES);
	assert_int_equal(fixture->kernel.image.data[0x123],
			 fake_linux_byte(FAKE_LINUX_START + 0x123));
}

static void it_is_found_by_one_register(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(find(fixture, &fixture->guest.memory.root.cr3, 1, NULL), 0);
	assert_whole(fixture);
}

static void number_of_the_address_space_is_no_address(void **state)
{
	struct fixture *fixture = *state;
	uint64_t cr3 = fixture->guest.memory.root.cr3 | 0x8000000000000abc;

	assert_int_equal(find(fixture, &cr3, 1, NULL), 0);
	assert_whole(fixture);
}

static void tables_of_user_mode_lead_to_those_of_the_kernel(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fixture->guest.user_root, fixture->guest.memory.root.cr3 | 0x1000);
	assert_int_equal(find(fixture, &fixture->guest.user_root, 1, NULL), 0);
	assert_whole(fixture);
}

static void the_vcpu_that_sees_most_is_believed(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t cr3s[] = { 0x7fff0000, 0x40000, fixture->guest.memory.root.cr3, 0 };

	assert_int_equal(find(fixture, cr3s, 4, NULL), 0);
	assert_whole(fixture);
}

/* A process's own tables go away with it, so they must not be what is remembered. */
static void the_kernels_own_tables_are_kept(void **state)
{
	struct fixture *fixture = *state;
	struct fake_memory *memory = &fixture->guest.memory;
	uint64_t process = fake_memory_take(memory, FAKE_MEMORY_PAGE);

	memcpy(memory->data + process, memory->data + memory->root.cr3, FAKE_MEMORY_PAGE);
	assert_int_equal(find(fixture, &process, 1, NULL), 0);
	assert_whole(fixture);
	assert_int_equal(fixture->kernel.walk.root.cr3, memory->root.cr3);
}

static void assert_not_found(struct fixture *fixture, uint64_t cr3, const char *message)
{
	struct ptvm_error error = { 0 };

	assert_int_equal(find(fixture, &cr3, 1, &error), -PTVM_NOT_FOUND);
	assert_non_null(strstr(error.message, message));
}

static void without_a_kernel_it_is_said(void **state)
{
	struct fixture *fixture = *state;

	assert_not_found(fixture, 0x7fff0000, "no kernel of Linux");
}

static void without_symbols_it_is_said(void **state)
{
	struct fixture *fixture = *state;

	*fake_memory_entry(&fixture->guest.memory, FAKE_LINUX_START + 0x20000, 1) = 0;
	assert_not_found(fixture, fixture->guest.memory.root.cr3, "no tables of symbols");
}

/* All possible addresses are mapped, to the same page. */
static void a_kernel_without_end_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct fake_memory *memory = &fixture->guest.memory;
	struct ptvm_error error = { 0 };

	for (uint64_t at = 0; at < KERNEL_IMAGE_BYTES + (4 << 20); at += 2 << 20)
		*fake_memory_entry(memory, 0xffffffff81000000 + at, 2) = 1 << 7 | 1;
	assert_int_equal(find(fixture, &memory->root.cr3, 1, &error), -PTVM_BAD_INPUT);
	assert_string_equal(error.message, "the guest's kernel is larger than 256 MiB");
}

static void memory_that_fails_is_told(void **state)
{
	struct fixture *fixture = *state;

	fixture->guest.memory.fails = true;
	assert_int_equal(find(fixture, &fixture->guest.memory.root.cr3, 1, NULL), -PTVM_SYSTEM);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define TEST_5_LEVELS(test)                                                                        \
	cmocka_unit_test_prestate_setup_teardown(test, set_up, tear_down, five_levels)

static void its_vmcoreinfo_is_read_by_its_own_pointer(void **state)
{
	struct fixture *fixture = *state;
	struct fake_linux *guest = &fixture->guest;
	char text[VMCOREINFO_BYTES + 1];

	assert_int_equal(find(fixture, &guest->memory.root.cr3, 1, NULL), 0);
	assert_int_equal(guest_kernel_vmcoreinfo(&fixture->kernel, text, NULL), 1);
	assert_string_equal(text, guest->vmcoreinfo);
	guest->vmcoreinfo[0] = '\0';
	assert_int_equal(guest_kernel_vmcoreinfo(&fixture->kernel, text, NULL), 1);
	assert_string_equal(text, "");
	guest->memory.fails = true;
	assert_true(guest_kernel_vmcoreinfo(&fixture->kernel, text, NULL) < 0);
	fixture->kernel.symbols.count = 0;
	assert_int_equal(guest_kernel_vmcoreinfo(&fixture->kernel, text, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_found_by_one_register),
		TEST_5_LEVELS(it_is_found_by_one_register),
		TEST(number_of_the_address_space_is_no_address),
		TEST(tables_of_user_mode_lead_to_those_of_the_kernel),
		TEST_5_LEVELS(tables_of_user_mode_lead_to_those_of_the_kernel),
		TEST(the_vcpu_that_sees_most_is_believed),
		TEST(the_kernels_own_tables_are_kept),
		TEST(without_a_kernel_it_is_said),
		TEST(without_symbols_it_is_said),
		TEST(a_kernel_without_end_is_refused),
		TEST(memory_that_fails_is_told),
		TEST(its_vmcoreinfo_is_read_by_its_own_pointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
