#include "decode/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/printable.h"

__attribute__((format(printf, 4, 0))) static void
tell(struct ptvm_error *error, enum ptvm_err code, int sys_errno, const char *format, va_list args)
{
	size_t used;

	if (!error || error->code)
		return;
	error->code = code;
	error->sys_errno = sys_errno;
	(void)vsnprintf(error->message, sizeof(error->message), format, args);
	used = strlen(error->message);
	if (sys_errno)
		(void)snprintf(error->message + used, sizeof(error->message) - used, ": %s",
			       strerror(sys_errno));
	/* Parts come from files, and from guests. */
	printable(error->message, strlen(error->message));
}

int ptvm_fail(struct ptvm_error *error, enum ptvm_err code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell(error, code, 0, format, args);
	va_end(args);
	return -(int)code;
}

int ptvm_fail_as(struct ptvm_error *error, const struct ptvm_error *why, int r)
{
	if (error && !error->code)
		*error = *why;
	return r;
}

const char *ptvm_error_text(const struct ptvm_error *error)
{
	return error->code ? error->message : "out of memory";
}

int ptvm_fail_errno(struct ptvm_error *error, const char *format, ...)
{
	int sys_errno = errno;
	va_list args;

	va_start(args, format);
	tell(error, PTVM_SYSTEM, sys_errno, format, args);
	va_end(args);
	return -PTVM_SYSTEM;
}
