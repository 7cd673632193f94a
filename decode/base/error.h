/* One error convention for all of ptvm: functions return 0 or a useful count, or a negative
 * enum ptvm_err. Those that are not called often also fill a struct ptvm_error with a message, but
 * not when memory is out: -PTVM_NO_MEMORY says it all. */
#pragma once

#include <stddef.h>

enum ptvm_err {
	PTVM_OK,
	PTVM_END,          /* no more input; not a fault */
	PTVM_BAD_PACKET,   /* not a packet the SDM defines */
	PTVM_BAD_INPUT,    /* a file that breaks its own format */
	PTVM_BAD_USAGE,    /* a wrong option or argument */
	PTVM_NOT_FOUND,    /* what was asked for is not there */
	PTVM_NO_CODE,      /* no bytes known at this address */
	PTVM_INCONSISTENT, /* observations that cannot all be true */
	PTVM_NO_MEMORY,
	PTVM_SYSTEM, /* a system call failed; see ptvm_error.sys_errno */
};

/** Why a call failed; owned by the caller, zeroed before use. */
struct ptvm_error {
	enum ptvm_err code;
	int sys_errno;     /* of a PTVM_SYSTEM error, otherwise 0 */
	char message[512]; /* printable, whatever it quotes */
};

/**
 * Record why a call failed. If `error` has a message already, that one is kept.
 *
 * @error   filled, or NULL when the caller does not want to know
 * @code    what to return
 * @format  printf format of the message: lower case, no period, names file and offset
 *
 * Returns -code, so that a caller can `return ptvm_fail(...)`.
 */
int ptvm_fail(struct ptvm_error *error, enum ptvm_err code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Record what another call recorded in `why`, if anything. Returns `r`, which that call returned.
 */
int ptvm_fail_as(struct ptvm_error *error, const struct ptvm_error *why, int r);

/** The message of a call that failed; "out of memory" where it recorded none. */
const char *ptvm_error_text(const struct ptvm_error *error);

/** As ptvm_fail() for a failed system call: appends strerror(errno) to the message. */
int ptvm_fail_errno(struct ptvm_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
