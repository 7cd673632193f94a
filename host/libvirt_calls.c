#include "host/libvirt_calls.h"

#include <dlfcn.h>

int libvirt_load(struct libvirt_calls *ret, struct ptvm_error *error)
{
	static const char library[] = "libvirt-qemu.so.0";

	/* libraries below it start threads: their code must stay */
	ret->library = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!ret->library)
		return ptvm_fail(error, PTVM_SYSTEM,
				 "%s: not installed (libvirt-clients brings it)", library);
#define FIND(name)                                                                                 \
	ret->name = (__typeof__(ret->name))dlsym(ret->library, #name);                             \
	if (!ret->name)                                                                            \
	return ptvm_fail(error, PTVM_SYSTEM, "%s: has no " #name, library)
	LIBVIRT_CALLS(FIND);
#undef FIND
	return 0;
}

void libvirt_unload(struct libvirt_calls *calls)
{
	if (calls->library)
		(void)dlclose(calls->library);
	calls->library = NULL;
}
