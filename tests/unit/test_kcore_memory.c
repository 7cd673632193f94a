#include "guest/kcore_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/channel.h"
#include "guest/channel_mount.h"
#include "guest/kcore_head.h"
#include "tests/fake_tree.h"

enum { FILE_BYTES = 64 };

/* 16 bytes of RAM at 0, 32 at 4 GiB, of which the file has 24, and pages that lie anywhere. */
static struct kcore_segment segments[] = {
	{ .address = 0xffffffffc0000000, .offset = 0, .size = 64, .physical = UINT64_MAX },
	{ .address = 0xffff888000000000, .offset = 8, .size = 16, .physical = 0 },
	{ .address = 0xffff888100000000, .offset = 40, .size = 32, .physical = 0x100000000 },
};

static struct fake_tree tree;
static struct kcore_head head = { .segments = { segments, 3, 3 } };
static struct kcore_memory memory;
static uint8_t data[32];

static int set_up(void **state)
{
	char file[FILE_BYTES];

	for (int i = 0; i < FILE_BYTES; i++)
		file[i] = (char)i;
	fake_tree_init(&tree);
	fake_tree_bytes(&tree, file, sizeof(file), "proc/kcore");
	memory.head = &head;
	assert_int_equal(channel_mount_new(tree.path, &memory.channel, NULL), 0);
	assert_int_equal(channel_open(memory.channel, "/proc/kcore", NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	channel_free(memory.channel);
	fake_tree_deinit(&tree);
	return 0;
}

static int read_at(uint64_t address, size_t size)
{
	return kcore_memory_read(&memory, address, data, size, NULL);
}

static void ram_is_where_segments_say(void **state)
{
	assert_int_equal(read_at(0, 16), 0);
	assert_int_equal(data[0], 8);
	assert_int_equal(data[15], 23);
	assert_int_equal(read_at(0x100000004, 4), 0);
	assert_int_equal(data[0], 44);
	assert_int_equal(data[3], 47);
}

static void there_is_none_elsewhere(void **state)
{
	assert_int_equal(read_at(15, 2), -PTVM_NOT_FOUND);
	assert_int_equal(read_at(16, 1), -PTVM_NOT_FOUND);
	assert_int_equal(read_at(0xffffffff, 1), -PTVM_NOT_FOUND);
	assert_int_equal(read_at(UINT64_MAX, 1), -PTVM_NOT_FOUND);
}

static void a_file_that_ends_early_has_none_there(void **state)
{
	assert_int_equal(read_at(0x100000000, 24), 0);
	assert_int_equal(read_at(0x100000000, 25), -PTVM_NOT_FOUND);
}

static void a_channel_that_fails_is_an_error(void **state)
{
	memory.channel->end_ms = 0;
	assert_int_equal(read_at(0, 16), -PTVM_SYSTEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ram_is_where_segments_say),
		TEST(there_is_none_elsewhere),
		TEST(a_file_that_ends_early_has_none_there),
		TEST(a_channel_that_fails_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
