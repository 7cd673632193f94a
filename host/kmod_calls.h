/* The calls of libkmod that ptvm makes, found by name at run time: the library brings those of
 * cryptography and compression, which take longer to load than a short recording to decode. */
#pragma once

#include <libkmod.h>

#define KMOD_CALLS(call)                                                                           \
	call(kmod_module_get_path);                                                                \
	call(kmod_module_new_from_name);                                                           \
	call(kmod_module_unref);                                                                   \
	call(kmod_new);                                                                            \
	call(kmod_set_log_fn);                                                                     \
	call(kmod_unref)

/** Zero-initialise before use; release with kmod_calls_unload(). */
struct kmod_calls {
	void *library;
#define KMOD_CALL(name) __typeof__(name) *name
	KMOD_CALLS(KMOD_CALL);
#undef KMOD_CALL
};

/** Load the library. Returns 0, or -PTVM_NOT_FOUND where it is not there or lacks a call. */
int kmod_calls_load(struct kmod_calls *ret);

/** Accepts zeroes. */
void kmod_calls_unload(struct kmod_calls *calls);
