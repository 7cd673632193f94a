/* Shared libraries that few runs need are loaded when they are needed. Loading one, with all that
 * it depends on, takes longer than decoding a short recording. */
#pragma once

#include <stddef.h>

/**
 * Load a library and find its functions.
 *
 * @file   its name, as dlopen(3) takes it
 * @names  of `count` functions
 * @ret    their addresses, in the same order; not all are set on failure
 *
 * Returns a handle for dlclose(3), or NULL when the library is not installed or lacks a function.
 */
void *library_load(const char *file, const char *const *names, void **ret, size_t count);
