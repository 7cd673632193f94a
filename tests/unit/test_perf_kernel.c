#include "host/machine/perf_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct perf_kernel kernel;

static int set_up(void **state)
{
	kernel = perf_kernel_here();
	return 0;
}

/* One of this thread, which counts nothing; skips where there are none, as in a container. */
static int open_event(int group_fd)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_DUMMY,
					.read_format = PERF_FORMAT_ID,
					.exclude_kernel = 1,
					.disabled = 1 };
	int fd = kernel.open(kernel.context, &attr, 0, -1, group_fd);

	if (fd < 0 && (errno == EACCES || errno == EPERM || errno == ENOSYS))
		skip();
	assert_true(fd >= 0);
	return fd;
}

static void close_event(int fd)
{
	assert_int_equal(kernel.close(kernel.context, fd), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* Programs that are run meanwhile get none. */
static void events_are_closed_by_exec(void **state)
{
	int fd = open_event(-1);

	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close_event(fd);
}

static void an_event_may_have_a_leader(void **state)
{
	int leader = open_event(-1), fd = open_event(leader);
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_DUMMY,
					.exclude_kernel = 1 };

	/* which leads no group itself then */
	assert_int_equal(kernel.open(kernel.context, &attr, 0, -1, fd), -1);
	assert_int_equal(errno, EINVAL);
	close_event(fd);
	close_event(leader);
}

static void an_event_is_asked_and_read(void **state)
{
	int fd = open_event(-1);
	uint64_t id = 0, values[2] = { 77, 77 };

	assert_int_equal(kernel.control(kernel.context, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	assert_int_equal(kernel.control(kernel.context, fd, PERF_EVENT_IOC_ID,
					(unsigned long)(uintptr_t)&id),
			 0);
	assert_int_equal(kernel.read(kernel.context, fd, values, sizeof(values)), sizeof(values));
	assert_int_equal(values[0], 0);
	assert_int_equal(values[1], id);
	close_event(fd);
}

static void a_ring_is_shared_with_the_kernel(void **state)
{
	const size_t size = 2 * kernel.page_size;
	int fd = open_event(-1);
	struct perf_event_mmap_page *page =
		kernel.map(kernel.context, size, PROT_READ | PROT_WRITE, fd, 0);

	if (page == MAP_FAILED && errno == EPERM)
		skip(); /* no more memory may be locked */
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(page->data_offset, kernel.page_size);
	assert_int_equal(page->data_size, kernel.page_size);
	assert_int_equal(kernel.unmap(kernel.context, page, size), 0);
	assert_int_equal(msync(page, size, MS_ASYNC), -1);
	close_event(fd);
}

static void it_waits_until_there_is_something_to_read(void **state)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fds[0].fd = -1;
	fds[1].fd = ends[0];
	assert_int_equal(kernel.wait(kernel.context, fds, 2, 0), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(kernel.wait(kernel.context, fds, 1, 0), 0);
	assert_int_equal(kernel.wait(kernel.context, fds, 2, -1), 1);
	assert_int_equal(fds[1].revents, POLLIN);
	assert_int_equal(kernel.close(kernel.context, ends[0]), 0);
	assert_int_equal(kernel.close(kernel.context, ends[1]), 0);
}

static void what_fails_does_so_as_the_call(void **state)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = 1 };
	char byte;

	assert_int_equal(kernel.open(kernel.context, &attr, 0, -1, -1), -1);
	errno = 0;
	assert_int_equal(kernel.control(kernel.context, -1, PERF_EVENT_IOC_ENABLE, 0), -1);
	assert_int_equal(errno, EBADF);
	errno = 0;
	assert_ptr_equal(kernel.map(kernel.context, kernel.page_size, PROT_READ, -1, 0),
			 MAP_FAILED);
	assert_int_equal(errno, EBADF);
	assert_int_equal(kernel.read(kernel.context, -1, &byte, 1), -1);
	assert_int_equal(kernel.close(kernel.context, -1), -1);
	assert_int_equal(kernel.unmap(kernel.context, &byte, kernel.page_size), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(kernel.page_size, sysconf(_SC_PAGESIZE));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, NULL)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_are_closed_by_exec),
		TEST(an_event_may_have_a_leader),
		TEST(an_event_is_asked_and_read),
		TEST(a_ring_is_shared_with_the_kernel),
		TEST(it_waits_until_there_is_something_to_read),
		TEST(what_fails_does_so_as_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
