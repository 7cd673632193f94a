#include "decode/perf/build_id.h"

#include <stdio.h>
#include <string.h>

enum { NOTE_HEADER = 12, NOTE_BUILD_ID = 3 };

static uint64_t align4(uint64_t size)
{
	return (size + 3) & ~(uint64_t)3;
}

const char *build_id_text(const struct build_id *id, char text[BUILD_ID_TEXT_BYTES])
{
	text[0] = '\0';
	for (size_t i = 0; i < id->size; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", id->bytes[i]);
	return text;
}

bool build_id_find(struct bytes notes, struct build_id *ret)
{
	uint64_t name_size, size, type;

	ret->size = 0;
	for (uint64_t at = 0; bytes_read(notes, at, 4, &name_size) &&
			      bytes_read(notes, at + 4, 4, &size) &&
			      bytes_read(notes, at + 8, 4, &type);) {
		uint64_t data_at = at + NOTE_HEADER + align4(name_size);
		struct bytes name = bytes_slice(notes, at + NOTE_HEADER, name_size);
		struct bytes data = bytes_slice(notes, data_at, size);

		if (type == NOTE_BUILD_ID && name.size == 4 && !memcmp(name.data, "GNU", 4) &&
		    data.size == size && size && size <= sizeof(ret->bytes)) {
			*ret = build_id_make(data.data, size);
			return true;
		}
		at = data_at + align4(size);
	}
	return false;
}
