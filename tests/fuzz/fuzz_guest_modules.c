/* The input: the text of /proc/modules, a NUL, the text of modules.dep, a NUL, and ELF notes or the
 * output of head(1) for files in /sys/module. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/code/modules.h"
#include "guest/guest_modules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes before the next NUL. */
static struct bytes take(struct bytes *from)
{
	const uint8_t *end = from->size ? memchr(from->data, 0, from->size) : NULL;
	const struct bytes part = { from->data, end ? (size_t)(end - from->data) : from->size };

	from->data += part.size + (end != NULL);
	from->size -= part.size + (end != NULL);
	return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes rest = { data, size }, text = take(&rest), paths = take(&rest);
	struct guest_modules modules = { 0 };
	struct modules loaded = { 0 };
	struct build_id id;

	if (!modules_parse((const char *)text.data, text.size, &loaded) &&
	    !guest_modules_name(&loaded, &modules) &&
	    !guest_modules_find_paths((const char *)paths.data, paths.size, "6.1.0", &modules))
		(void)guest_modules_take_files((const char *)rest.data, rest.size, &modules);
	json_decref(guest_modules_json(&modules));
	for (size_t i = 0; i < modules.count; i++)
		if (modules.items[i].path && strncmp(modules.items[i].path, "/lib/modules/", 13))
			abort();
	if (build_id_find(rest, &id) != (id.size > 0))
		abort();
	guest_modules_free(&modules);
	modules_free(&loaded);
	return 0;
}
