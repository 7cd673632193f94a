#include "host/machine/kmod_calls.h"

#include <dlfcn.h>
#include <stddef.h>

#include "decode/base/error.h"
#include "decode/base/library.h"

int kmod_calls_load(struct kmod_calls *ret)
{
#define NAME(name) #name,
	static const char *const names[] = { KMOD_CALLS(NAME) };
#undef NAME

	ret->library =
		library_load("libkmod.so.2", names, (void **)ret, sizeof(names) / sizeof(names[0]));
	return ret->library ? 0 : -PTVM_NOT_FOUND;
}

void kmod_calls_unload(struct kmod_calls *calls)
{
	if (calls->library)
		(void)dlclose(calls->library);
	calls->library = NULL;
}
