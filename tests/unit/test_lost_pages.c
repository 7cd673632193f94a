#include "decode/base/lost_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGES = 8 };

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* A file of ones, mapped, which then loses all but its first `left` pages. */
static struct bytes cut_file(unsigned left)
{
	const size_t size = PAGES * page_size();
	const int fd = memfd_create("file", MFD_CLOEXEC);
	uint8_t *writable = MAP_FAILED;
	void *data;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		fail_msg("no file in memory");
	writable = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(writable, MAP_FAILED);
	assert_ptr_not_equal(data, MAP_FAILED);
	memset(writable, 1, size);
	(void)munmap(writable, size);
	assert_int_equal(ftruncate(fd, (off_t)(left * page_size())), 0);
	(void)close(fd);
	return (struct bytes){ data, size };
}

static unsigned sum_of(struct bytes file)
{
	unsigned sum = 0;

	for (size_t i = 0; i < file.size; i += page_size())
		sum += ((const volatile uint8_t *)file.data)[i];
	return sum;
}

static void what_is_lost_reads_as_zeroes_and_is_told(void **state)
{
	struct bytes cut = cut_file(3), whole = cut_file(PAGES);
	struct ptvm_error error = { 0 };
	char message[128];

	lost_pages_survive();
	assert_int_equal(lost_pages_check(cut, "cut", &error), 0);
	assert_int_equal(sum_of(whole), PAGES);
	assert_int_equal(sum_of(cut), 3);
	assert_int_equal(lost_pages_check(whole, "whole", &error), 0);
	assert_int_equal(lost_pages_check(cut, "cut", &error), -PTVM_BAD_INPUT);
	(void)snprintf(message, sizeof(message),
		       "cut: cannot be read from offset %#zx: was it cut short meanwhile?",
		       3 * page_size());
	assert_string_equal(error.message, message);
	(void)munmap((void *)cut.data, cut.size);
	(void)munmap((void *)whole.data, whole.size);
}

static void the_first_page_is_told_whatever_was_read_first(void **state)
{
	struct bytes cut = cut_file(1);
	struct ptvm_error error = { 0 };
	char offset[32];

	lost_pages_survive();
	for (size_t i = PAGES; i--;)
		(void)((const volatile uint8_t *)cut.data)[i * page_size()];
	assert_int_equal(lost_pages_check(cut, "cut", &error), -PTVM_BAD_INPUT);
	(void)snprintf(offset, sizeof(offset), " %#zx:", page_size());
	assert_non_null(strstr(error.message, offset));
	(void)munmap((void *)cut.data, cut.size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_lost_reads_as_zeroes_and_is_told),
		cmocka_unit_test(the_first_page_is_told_whatever_was_read_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
