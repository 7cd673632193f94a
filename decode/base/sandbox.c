/* A filter of system calls is a program for the kernel's BPF machine, which sees the number and the
 * arguments of a call (seccomp(2)). */
#include "decode/base/sandbox.h"

#ifdef __x86_64__ /* whose numbers of calls these are */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LOAD(field)                                                                                \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define RESULT(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), RESULT(SECCOMP_RET_ALLOW)
/* Allowed unless the memory is to be executed: the third argument is its protection. */
#define ALLOW_DATA(call)                                                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 4), LOAD(args[2]),                      \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0), RESULT(SECCOMP_RET_ALLOW),  \
		LOAD(nr)

void sandbox_enter(void)
{
	/* clang-format off */
	static struct sock_filter steps[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		RESULT(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		ALLOW(read), ALLOW(recvfrom), ALLOW(recvmsg),
		ALLOW(write), ALLOW(sendto), ALLOW(sendmsg),
		ALLOW_DATA(mmap), ALLOW_DATA(mprotect),
		ALLOW(munmap), ALLOW(mremap), ALLOW(madvise), ALLOW(brk),
		ALLOW(futex), ALLOW(rt_sigreturn), ALLOW(sigaltstack),
		ALLOW(exit), ALLOW(exit_group),
		RESULT(SECCOMP_RET_ERRNO | EPERM),
	};
	/* clang-format on */
	static const struct sock_fprog filter = { sizeof(steps) / sizeof(*steps), steps };

	/* Without it only root may have a filter. */
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

#else

void sandbox_enter(void)
{
}

#endif
