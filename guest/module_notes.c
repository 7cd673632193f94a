#include "guest/module_notes.h"

#include <stdlib.h>

#include "decode/base/bytes.h"
#include "decode/base/cleanup.h"
#include "decode/base/text.h"
#include "decode/perf/build_id.h"
#include "guest/module_list.h"
#include "guest/page_walk.h"

enum { NOTE_ALIGN = 4 };

/* Sizes of name and content, kind, name: of an id by SHA-1, as Linux is linked with. */
static const uint8_t begin[] = {
	4, 0, 0, 0, BUILD_ID_BYTES, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0
};

int module_notes_print(struct page_walk *walk, const struct listed_module *module,
		       struct text *text, struct ptvm_error *error)
{
	const size_t size =
		module->fixed_size < MODULE_NOTES_BYTES ? module->fixed_size : MODULE_NOTES_BYTES;
	_cleanup_free_ uint8_t *data = NULL;
	int r;

	if (!module->fixed || size < sizeof(begin) + BUILD_ID_BYTES)
		return 0;
	data = malloc(size);
	if (!data)
		return -PTVM_NO_MEMORY;
	r = page_walk_read(walk, module->fixed, data, size, error);
	for (size_t at = 0; !r && at <= size - sizeof(begin) - BUILD_ID_BYTES; at += NOTE_ALIGN)
		if (!memcmp(data + at, begin, sizeof(begin))) {
			text_add(text, (const char *)data + at, sizeof(begin) + BUILD_ID_BYTES);
			break;
		}
	return r;
}
