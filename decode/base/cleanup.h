/* Scope guards: what a function acquires it releases on every way out. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void ptvm_free_pointer(void *pointer)
{
	free(*(void **)pointer);
}

static inline void ptvm_close_fd(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void ptvm_fclose(FILE *const *file)
{
	if (*file)
		(void)fclose(*file);
}

#define _cleanup_(function) __attribute__((cleanup(function)))
#define _cleanup_free_ _cleanup_(ptvm_free_pointer)
#define _cleanup_close_ _cleanup_(ptvm_close_fd)
#define _cleanup_fclose_ _cleanup_(ptvm_fclose)

/* Hand a guarded descriptor to the caller. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Hand a guarded pointer to the caller. */
#define take_ptr(pointer)                                                                          \
	({                                                                                         \
		__typeof__(pointer) taken_ = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		taken_;                                                                            \
	})
