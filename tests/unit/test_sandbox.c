/* sandbox: what a process may still do. Each question is put to one of its own. */
#include "decode/base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { YES = 7, NO = 8, OTHERWISE = 9 };

static int status_of(void (*act)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		sandbox_enter();
		act();
		_exit(OTHERWISE);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* A call that must fail as one that is not allowed. */
#define DENIED(name, call)                                                                         \
	static void name(void)                                                                     \
	{                                                                                          \
		long r = (long)(call);                                                             \
                                                                                                   \
		_exit(r < 0 && errno == EPERM ? NO : YES);                                         \
	}

DENIED(open_a_file, open("/dev/null", O_RDONLY))
DENIED(make_a_file, open("/tmp/test_sandbox", O_WRONLY | O_CREAT | O_EXCL, 0600))
DENIED(remove_a_file, unlink("/tmp/test_sandbox"))
DENIED(make_a_socket, socket(AF_INET, SOCK_STREAM, 0))
DENIED(run_a_program, execl("/bin/true", "true", NULL))
DENIED(make_a_process, fork())
DENIED(signal_the_parent, kill(getppid(), 0))
DENIED(look_into_a_process, syscall(SYS_ptrace, 0, 0, 0, 0))
DENIED(ask_for_privileges, prctl(PR_SET_DUMPABLE, 1))
DENIED(make_code,
       (intptr_t)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
DENIED(turn_data_into_code, mprotect((void *)((uintptr_t)&make_code & ~(uintptr_t)4095), 4096,
				     PROT_READ | PROT_WRITE | PROT_EXEC))
DENIED(call_as_x32, syscall(0x40000000 | SYS_write, 1, "", 0))

static bool has_sandbox(void)
{
#ifdef __x86_64__
	return prctl(PR_GET_SECCOMP) >= 0; /* a kernel may lack filters */
#else
	return false;
#endif
}

static void nothing_can_be_reached_or_made(void **state)
{
	static void (*const acts[])(void) = {
		open_a_file,        make_a_file,    remove_a_file,       make_a_socket,
		run_a_program,      make_a_process, signal_the_parent,   look_into_a_process,
		ask_for_privileges, make_code,      turn_data_into_code, call_as_x32,
	};

	if (!has_sandbox())
		skip();
	for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
		int status = status_of(acts[i]);

		if (!WIFEXITED(status) || WEXITSTATUS(status) != NO)
			fail_msg("act %zu: status %#x", i, (unsigned)status);
	}
}

static void work(void)
{
	char *large = malloc(32 << 20), *small = malloc(100), c = 'x';

	if (!large || !small)
		_exit(NO);
	large[20 << 20] = 1;
	large = realloc(large, 64 << 20);
	if (!large || large[20 << 20] != 1 || write(STDERR_FILENO, "", 0))
		_exit(NO);
	free(large);
	free(small);
	_exit(send(42, &c, 1, MSG_NOSIGNAL) == 1 && recv(42, &c, 1, 0) == 1 && c == 'y' ? YES : NO);
}

static void memory_and_what_is_open_can_be_used(void **state)
{
	int ends[2], status;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(dup2(ends[0], 42), 42);
	assert_int_equal(write(ends[1], "y", 1), 1);
	status = status_of(work);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), YES);
	(void)close(42);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_can_be_reached_or_made),
		cmocka_unit_test(memory_and_what_is_open_can_be_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
