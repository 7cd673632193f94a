#include "decode/base/library.h"

#include <dlfcn.h>

void *library_load(const char *file, const char *const *names, void **ret, size_t count)
{
	/* NODELETE: libraries that it needs may start threads, or leave code behind that runs at
	 * exit. */
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
