#include "decode/base/library.h"

#include <dlfcn.h>

void *library_load(const char *file, const char *const *names, void **ret, size_t count)
{
	/* NODELETE: what it depends on may start threads or register functions to run at exit,
	 * whose code must stay. */
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	for (size_t i = 0; library && i < count; i++) {
		ret[i] = dlsym(library, names[i]);
		if (!ret[i]) {
			(void)dlclose(library);
			library = NULL;
		}
	}
	return library;
}
