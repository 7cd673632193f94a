#include "host/kmod_calls.h"

#include <dlfcn.h>
#include <stddef.h>

#include "decode/base/error.h"

int kmod_calls_load(struct kmod_calls *ret)
{
	/* what libraries below it leave to be done at exit must stay */
	ret->library = dlopen("libkmod.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!ret->library)
		return -PTVM_NOT_FOUND;
#define FIND(name)                                                                                 \
	ret->name = (__typeof__(ret->name))dlsym(ret->library, #name);                             \
	if (!ret->name)                                                                            \
	return -PTVM_NOT_FOUND
	KMOD_CALLS(FIND);
#undef FIND
	return 0;
}

void kmod_calls_unload(struct kmod_calls *calls)
{
	if (calls->library)
		(void)dlclose(calls->library);
	calls->library = NULL;
}
