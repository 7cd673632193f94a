/* The calls of libkmod that ptvm makes, found by name at run time: the libraries that it needs in
 * turn, of cryptography and compression, take longer to load than a short recording takes to
 * decode. */
#pragma once

#include <libkmod.h>

/* clang-format off */
#define KMOD_CALLS(call) \
	call(kmod_module_get_path) \
	call(kmod_module_new_from_name) \
	call(kmod_module_unref) \
	call(kmod_new) \
	call(kmod_set_log_fn) \
	call(kmod_unref)
/* clang-format on */

/** Zero-initialise before use; release with kmod_calls_unload(). */
struct kmod_calls {
#define CALL(name) __typeof__(name) *name;
	KMOD_CALLS(CALL) /* first: library_load() fills them in */
#undef CALL
	void *library;
};

/** Load the library. Returns 0, or -PTVM_NOT_FOUND where it is not there or lacks a call. */
int kmod_calls_load(struct kmod_calls *ret);

/** Accepts zeroes. */
void kmod_calls_unload(struct kmod_calls *calls);
