#include "guest/guest_facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "guest/channel_mount.h"
#include "guest/kcore_head.h"
#include "tests/fake_tree.h"

static const uint64_t linked_start = 0xffffffff81000000;

static struct fixture {
	struct fake_tree tree;
	struct channel *channel;
	struct kcore_head head;
	struct guest_facts facts;
} fixture;

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	memset(&fixture.facts, 0xff, sizeof(fixture.facts));
	fake_tree_init(&fixture.tree);
	assert_int_equal(channel_mount_new(fixture.tree.path, &fixture.channel, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	channel_free(fixture.channel);
	fake_tree_deinit(&fixture.tree);
	return 0;
}

static void put(const char *path, const char *text)
{
	fake_tree_file(&fixture.tree, text, "%s", path);
}

static void put_notes(const uint8_t *notes, size_t size)
{
	fake_tree_bytes(&fixture.tree, notes, size, "sys/kernel/notes");
}

static void find(uint64_t kernel_start)
{
	guest_facts_read(fixture.channel, &fixture.head, kernel_start, &fixture.facts);
}

static void assert_fact(const struct guest_fact *fact, const char *value, const char *from)
{
	assert_string_equal(fact->value, value);
	if (from)
		assert_string_equal(fact->from, from);
	else
		assert_null(fact->from);
}

static void put_all_files(void)
{
	static const uint8_t notes[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\x01\x02\xfe\xff";

	put("proc/sys/kernel/osrelease", "6.1.0-file\n");
	put("proc/sys/kernel/random/boot_id", "0b7c0d5e-0000-4000-8000-000000000001\n");
	put("proc/stat", "cpu 1 2 3\nbtime 1700000000\nprocesses 77\n");
	put_notes(notes, sizeof(notes) - 1);
}

static void files_are_asked_first(void **state)
{
	put_all_files();
	(void)strcpy(fixture.head.vmcoreinfo,
		     "OSRELEASE=6.9\nBUILD-ID=abcd\nKERNELOFFSET=15000000\n");
	find(0xffffffff96000000);
	assert_fact(&fixture.facts.release, "6.1.0-file", "/proc/sys/kernel/osrelease");
	assert_fact(&fixture.facts.build_id, "0102feff", "/sys/kernel/notes");
	assert_fact(&fixture.facts.kaslr_offset, "0x15000000", "VMCOREINFO");
	assert_fact(&fixture.facts.boot_time, "1700000000", "/proc/stat");
	assert_fact(&fixture.facts.boot_id, "0b7c0d5e-0000-4000-8000-000000000001",
		    "/proc/sys/kernel/random/boot_id");
}

static void what_is_missing_is_had_in_another_way(void **state)
{
	(void)strcpy(fixture.head.vmcoreinfo, "OSRELEASE=6.9\nBUILD-ID=abcd\n");
	find(0xffffffff96000000);
	assert_fact(&fixture.facts.release, "6.9", "VMCOREINFO");
	assert_fact(&fixture.facts.build_id, "abcd", "VMCOREINFO");
	assert_fact(&fixture.facts.kaslr_offset, "0x15000000", "/proc/kallsyms");
}

static void what_nobody_knows_is_empty(void **state)
{
	find(0xffffffff96000000);
	assert_fact(&fixture.facts.release, "", NULL);
	assert_fact(&fixture.facts.build_id, "", NULL);
	assert_fact(&fixture.facts.boot_time, "", NULL);
	assert_fact(&fixture.facts.boot_id, "", NULL);
}

static void a_kernel_that_did_not_move_has_offset_zero(void **state)
{
	find(linked_start);
	assert_fact(&fixture.facts.kaslr_offset, "0x0", "/proc/kallsyms");
	(void)strcpy(fixture.head.vmcoreinfo, "KERNELOFFSET=0\n");
	find(linked_start);
	assert_fact(&fixture.facts.kaslr_offset, "0x0", "VMCOREINFO");
}

/* The guest makes them, and they go to terminals and files. */
static void values_are_printable(void **state)
{
	put("proc/sys/kernel/osrelease", "6.1 ~\033[2J");
	put("proc/sys/kernel/random/boot_id", "\x7f");
	put("proc/stat", "cpu\nbtime 17\xff\n");
	(void)strcpy(fixture.head.vmcoreinfo, "BUILD-ID=ab\tcd\nKERNELOFFSET=15\x9b\n");
	find(0xffffffff96000000);
	assert_fact(&fixture.facts.release, "6.1 ~", "/proc/sys/kernel/osrelease");
	assert_fact(&fixture.facts.build_id, "ab", "VMCOREINFO");
	assert_fact(&fixture.facts.kaslr_offset, "0x15", "VMCOREINFO");
	assert_fact(&fixture.facts.boot_time, "17", "/proc/stat");
	assert_fact(&fixture.facts.boot_id, "", NULL);
}

static void a_value_without_sense_is_had_in_another_way(void **state)
{
	static const uint8_t notes[] = "\4\0\0\0\4\0\0\0\4\0\0\0GNU\0\x01\x02\xfe\xff";

	put("proc/sys/kernel/osrelease", "\n");
	put_notes(notes, sizeof(notes) - 1); /* of another kind */
	(void)strcpy(fixture.head.vmcoreinfo, "OSRELEASE=6.9\nBUILD-ID=abcd\nKERNELOFFSET=\n");
	find(0xffffffff96000000);
	assert_fact(&fixture.facts.release, "6.9", "VMCOREINFO");
	assert_fact(&fixture.facts.build_id, "abcd", "VMCOREINFO");
	assert_fact(&fixture.facts.kaslr_offset, "0x15000000", "/proc/kallsyms");
}

static void a_long_value_is_cut(void **state)
{
	char text[300];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	put("proc/sys/kernel/osrelease", text);
	memcpy(text, "\nbtime ", 7);
	put("proc/stat", text);
	find(linked_start);
	assert_int_equal(strlen(fixture.facts.release.value),
			 sizeof(fixture.facts.release.value) - 1);
	assert_int_equal(strlen(fixture.facts.boot_time.value),
			 sizeof(fixture.facts.boot_time.value) - 1);
}

static void the_time_is_a_line_of_its_own(void **state)
{
	put("proc/stat", "btime 1\nxbtime 2\nbtimes 3\nbtime\n");
	find(linked_start);
	assert_fact(&fixture.facts.boot_time, "", NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_are_asked_first),      TEST(what_is_missing_is_had_in_another_way),
		TEST(what_nobody_knows_is_empty), TEST(a_kernel_that_did_not_move_has_offset_zero),
		TEST(values_are_printable),       TEST(a_value_without_sense_is_had_in_another_way),
		TEST(a_long_value_is_cut),        TEST(the_time_is_a_line_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
