#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/vm_memory.h"

/* Memory of a process that is a file: 4 KiB of A at 0x1000, of B at 0x3000. */
static struct vm_memory in_file(void)
{
	struct vm_memory memory = {
		.count = 2,
		.ranges = { { { 0x10000, 0x10fff }, 0x3000 }, { { 0xf000, 0xffff }, 0x1000 } },
	};
	char name[] = "/tmp/ptvm-test-XXXXXX", page[4096];

	memory.file = mkstemp(name);
	assert_true(memory.file >= 0);
	(void)unlink(name);
	memset(page, 'A', sizeof(page));
	assert_int_equal(pwrite(memory.file, page, sizeof(page), 0x1000), sizeof(page));
	memset(page, 'B', sizeof(page));
	assert_int_equal(pwrite(memory.file, page, sizeof(page), 0x3000), sizeof(page));
	return memory;
}

static void memory_is_read_across_ranges(void **state)
{
	struct vm_memory memory = in_file();
	struct guest_memory reader = vm_memory_reader(&memory);
	char data[4] = "";

	assert_int_equal(reader.read(reader.context, 0xfffe, data, 4, NULL), 0);
	assert_memory_equal(data, "AABB", 4);
	vm_memory_close(&memory);
}

static void there_is_no_memory_outside_of_ranges(void **state)
{
	struct vm_memory memory = in_file();
	struct guest_memory reader = vm_memory_reader(&memory);
	struct ptvm_error error = { 0 };
	char data[4];

	assert_int_equal(reader.read(reader.context, 0x10ffe, data, 4, &error), -PTVM_NOT_FOUND);
	assert_int_equal(reader.read(reader.context, 0, data, 4, &error), -PTVM_NOT_FOUND);
	assert_int_equal(error.code, PTVM_OK);
	vm_memory_close(&memory);
}

static void a_process_that_ended_is_told(void **state)
{
	struct vm_memory memory = in_file();
	struct guest_memory reader = vm_memory_reader(&memory);
	struct ptvm_error error = { 0 };
	char data[4];

	assert_int_equal(ftruncate(memory.file, 0), 0);
	assert_int_equal(reader.read(reader.context, 0x10000, data, 4, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "the process that runs the guest has ended");
	vm_memory_close(&memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_read_across_ranges),
		cmocka_unit_test(there_is_no_memory_outside_of_ranges),
		cmocka_unit_test(a_process_that_ended_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
