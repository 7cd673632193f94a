/* Libraries that few runs need, loaded only then: with those that they need in turn, they take
 * longer to load than a short recording takes to decode. */
#pragma once

#include <stddef.h>

/**
 * Load a library and find its functions.
 *
 * @names  of `count` functions
 * @ret    where they are, in the same order
 *
 * Returns what dlclose() takes, or NULL where it is not there or lacks a function.
 */
void *library_load(const char *file, const char *const *names, void **ret, size_t count);
