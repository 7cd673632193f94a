#include "decode/base/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Erase to the end of the line (ECMA-48, EL). */
#define ERASE "\033[K"

void progress_show(const char *format, ...)
{
	va_list args;

	if (!isatty(STDERR_FILENO))
		return;
	va_start(args, format);
	(void)fputc('\r', stderr);
	(void)vfprintf(stderr, format, args);
	(void)fputs(ERASE, stderr);
	va_end(args);
}

void progress_clear(void)
{
	if (isatty(STDERR_FILENO))
		(void)fputs("\r" ERASE, stderr);
}
