#include "guest/memory_kcore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/guest_kernel.h"
#include "guest/kcore_head.h"
#include "tests/fake_linux.h"
#include "tests/fake_modules.h"

enum { PAGE = 4096, TEXT_BYTES = 4 * PAGE /* FAKE_LINUX_TEXT_BYTES in pages */ };

static struct fixture {
	struct fake_linux guest;
	struct guest_kernel kernel;
	struct memory_kcore kcore;
	struct kcore_head head;
	struct ptvm_error error;
	uint8_t data[KCORE_HEAD_BYTES];
} fixture;

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fake_linux_init(&fixture.guest, false);
	assert_int_equal(guest_kernel_find(&fixture.guest.memory.reader, &fixture.guest.memory.root,
					   1, &fixture.kernel, NULL),
			 0);
	return 0;
}

static int tear_down(void **state)
{
	kcore_head_free(&fixture.head);
	memory_kcore_free(&fixture.kcore);
	guest_kernel_free(&fixture.kernel);
	fake_linux_deinit(&fixture.guest);
	return 0;
}

static int make(void)
{
	return memory_kcore_make(&fixture.kernel, &fixture.kcore, &fixture.error);
}

static int read_at(uint64_t offset, size_t size)
{
	memset(fixture.data, 0x5a, sizeof(fixture.data));
	return memory_kcore_read(&fixture.kcore, &fixture.kernel, offset, fixture.data, size,
				 &fixture.error);
}

/* As who copies it sees the file. */
static void make_and_look(void)
{
	assert_int_equal(make(), 0);
	assert_int_equal(read_at(0, KCORE_HEAD_BYTES), KCORE_HEAD_BYTES);
	assert_int_equal(kcore_head_read((struct bytes){ fixture.data, KCORE_HEAD_BYTES },
					 &fixture.head, NULL),
			 0);
}

static void assert_segment(size_t i, uint64_t address, uint64_t size)
{
	const struct kcore_segment *segment = &fixture.head.segments.items[i];

	assert_int_equal(segment->address, address);
	assert_int_equal(segment->size, size);
}

/* Code of modules that is near each other is one piece. */
static void there_is_a_segment_for_each_piece_of_code(void **state)
{
	uint64_t offset = KCORE_HEAD_BYTES;

	make_and_look();
	assert_int_equal(fixture.head.segments.count, 2);
	assert_segment(0, FAKE_LINUX_START, TEXT_BYTES);
	assert_segment(1, FAKE_LINUX_MODULES, FAKE_MODULE_BYTES + PAGE);
	for (size_t i = 0; i < fixture.head.segments.count; i++) {
		assert_int_equal(fixture.head.segments.items[i].offset, offset);
		offset += fixture.head.segments.items[i].size;
	}
}

static void it_tells_what_the_kernel_tells_crash_dumps(void **state)
{
	make_and_look();
	assert_string_equal(fixture.head.vmcoreinfo, fixture.guest.vmcoreinfo);
}

static void a_kernel_that_tells_nothing_has_none(void **state)
{
	memset(fixture.guest.vmcoreinfo, 0, PAGE);
	make_and_look();
	assert_string_equal(fixture.head.vmcoreinfo, "");
	assert_int_equal(fixture.head.segments.count, 2);
}

static void code_is_read_as_it_is(void **state)
{
	make_and_look();
	assert_int_equal(read_at(KCORE_HEAD_BYTES, TEXT_BYTES), TEXT_BYTES);
	for (uint64_t i = 0; i < TEXT_BYTES; i++)
		assert_int_equal(fixture.data[i], fake_linux_byte(FAKE_LINUX_START + i));
	assert_int_equal(read_at(KCORE_HEAD_BYTES + PAGE + 5, 3), 3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(fixture.data[i], fake_linux_byte(FAKE_LINUX_START + PAGE + 5 + i));
	assert_int_equal(fixture.data[3], 0x5a);
}

/* Channels go on where a read was short. */
static void a_read_ends_with_its_piece(void **state)
{
	const uint64_t modules = KCORE_HEAD_BYTES + TEXT_BYTES,
		       end = modules + FAKE_MODULE_BYTES + PAGE;

	make_and_look();
	assert_int_equal(read_at(KCORE_HEAD_BYTES - 3, 100), 3);
	assert_int_equal(read_at(modules - 3, 100), 3);
	assert_int_equal(fixture.data[0], fake_linux_byte(FAKE_LINUX_START + TEXT_BYTES - 3));
	assert_int_equal(read_at(modules, 1), 1);
	assert_int_equal(fixture.data[0], 0xcc);
	assert_int_equal(read_at(end - 3, 100), 3);
	assert_int_equal(read_at(end, 100), 0);
	assert_int_equal(read_at(UINT64_MAX - 10, 100), 0);
}

/* A module's read-only data and its symbols are between its code and the next one's. */
static void what_is_no_code_is_zero(void **state)
{
	make_and_look();
	assert_int_equal(read_at(KCORE_HEAD_BYTES + TEXT_BYTES, FAKE_MODULE_BYTES + PAGE),
			 FAKE_MODULE_BYTES + PAGE);
	assert_int_equal(fixture.data[0], 0xcc);
	for (size_t i = PAGE; i < FAKE_MODULE_BYTES; i++)
		assert_int_equal(fixture.data[i], 0);
	assert_int_equal(fixture.data[FAKE_MODULE_BYTES], 0xcc);
}

/* A module was removed, and its memory is something else's. */
static void what_is_no_code_any_more_is_zero(void **state)
{
	uint64_t *entry = fake_memory_entry(&fixture.guest.memory, FAKE_LINUX_MODULES, 1);

	make_and_look();
	assert_int_equal(read_at(KCORE_HEAD_BYTES + TEXT_BYTES, 1), 1);
	assert_int_equal(fixture.data[0], 0xcc);
	*entry |= FAKE_MEMORY_DATA;
	page_walk_forget(&fixture.kernel.walk);
	assert_int_equal(read_at(KCORE_HEAD_BYTES + TEXT_BYTES, 1), 1);
	assert_int_equal(fixture.data[0], 0);
}

static void code_of_users_is_none_of_the_kernels(void **state)
{
	(void)fake_memory_put(&fixture.guest.memory, FAKE_LINUX_MODULES + 0x100000, "user", 4,
			      FAKE_MEMORY_USER);
	(void)fake_memory_put(&fixture.guest.memory, FAKE_LINUX_MODULES + 0x200000, "bpf", 3, 0);
	page_walk_forget(&fixture.kernel.walk);
	make_and_look();
	assert_int_equal(fixture.head.segments.count, 3);
	assert_segment(2, FAKE_LINUX_MODULES + 0x200000, PAGE);
}

/* It lies among other data, which is the guest's own affair. */
static void the_table_of_jump_labels_is_there(void **state)
{
	guest_kernel_free(&fixture.kernel);
	(void)fake_memory_put(&fixture.guest.memory, FAKE_LINUX_START + FAKE_LINUX_LABELS - PAGE,
			      "secret", 6, FAKE_MEMORY_DATA);
	fake_linux_put_labels(&fixture.guest, "labels", 6);
	assert_int_equal(guest_kernel_find(&fixture.guest.memory.reader, &fixture.guest.memory.root,
					   1, &fixture.kernel, NULL),
			 0);
	make_and_look();
	/* near the text */
	assert_segment(0, FAKE_LINUX_START, FAKE_LINUX_LABELS + PAGE);
	assert_int_equal(read_at(KCORE_HEAD_BYTES + FAKE_LINUX_LABELS - PAGE, 2 * PAGE), 2 * PAGE);
	assert_int_equal(fixture.data[0], 0);
	assert_memory_equal(fixture.data + PAGE, "labels", 6);
}

/* One page of code in each 128 KiB. */
static void put_pieces(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		*fake_memory_entry(&fixture.guest.memory, FAKE_LINUX_MODULES + 0x200000 + (i << 17),
				   1) = 1 << 16 | 1;
	page_walk_forget(&fixture.kernel.walk);
}

static void there_are_as_many_pieces_as_headers_fit(void **state)
{
	enum { MOST = 1023 };

	put_pieces(MOST - 2);
	make_and_look();
	assert_int_equal(fixture.head.segments.count, MOST);
	assert_string_equal(fixture.head.vmcoreinfo, fixture.guest.vmcoreinfo);
	memory_kcore_free(&fixture.kcore);
	put_pieces(MOST - 1);
	assert_int_equal(make(), -PTVM_BAD_INPUT);
	assert_string_equal(fixture.error.message, "the kernel has more than 1023 pieces of code");
}

static void assert_no_text(void)
{
	fixture.error = (struct ptvm_error){ 0 };
	assert_int_equal(make(), -PTVM_BAD_INPUT);
	assert_non_null(strstr(fixture.error.message, "no kernel text from"));
	assert_int_equal(fixture.kcore.code.count, 0);
}

static void text_must_be_in_the_image(void **state)
{
	const uint64_t address = fixture.kernel.image.address, end = fixture.kernel.image_end;

	fixture.kernel.image.address = FAKE_LINUX_START + 1;
	assert_no_text();
	fixture.kernel.image.address = address;
	fixture.kernel.image_end = FAKE_LINUX_START + FAKE_LINUX_TEXT_BYTES - 1;
	assert_no_text();
	fixture.kernel.image_end = end;
	assert_int_equal(make(), 0);
}

static void memory_that_fails_is_told(void **state)
{
	make_and_look();
	fixture.guest.memory.fails = true;
	page_walk_forget(&fixture.kernel.walk);
	assert_int_equal(read_at(KCORE_HEAD_BYTES, 1), -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message, "no memory any more");
	assert_int_equal(read_at(0, 16), 16); /* which is here */
	memory_kcore_free(&fixture.kcore);
	assert_int_equal(make(), -PTVM_SYSTEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(there_is_a_segment_for_each_piece_of_code),
		TEST(it_tells_what_the_kernel_tells_crash_dumps),
		TEST(a_kernel_that_tells_nothing_has_none),
		TEST(code_is_read_as_it_is),
		TEST(a_read_ends_with_its_piece),
		TEST(what_is_no_code_is_zero),
		TEST(what_is_no_code_any_more_is_zero),
		TEST(the_table_of_jump_labels_is_there),
		TEST(code_of_users_is_none_of_the_kernels),
		TEST(there_are_as_many_pieces_as_headers_fit),
		TEST(text_must_be_in_the_image),
		TEST(memory_that_fails_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
