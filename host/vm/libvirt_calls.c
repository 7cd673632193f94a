#include "host/vm/libvirt_calls.h"

#include <dlfcn.h>

#include "decode/base/library.h"

int libvirt_load(struct libvirt_calls *ret, struct ptvm_error *error)
{
#define NAME(name) #name,
	static const char *const names[] = { LIBVIRT_CALLS(NAME) };
#undef NAME
	static const char file[] = "libvirt-qemu.so.0";

	ret->library = library_load(file, names, (void **)ret, sizeof(names) / sizeof(names[0]));
	return ret->library ? 0
			    : ptvm_fail(error, PTVM_SYSTEM,
					"%s: not installed (libvirt-clients brings it), or too old",
					file);
}

void libvirt_unload(struct libvirt_calls *calls)
{
	if (calls->library)
		(void)dlclose(calls->library);
	calls->library = NULL;
}
