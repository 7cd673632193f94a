/* The section is a file of trace-cmd, as perf writes it (tools/perf/util/trace-event-info.c): a
 * head; the layout of pages and events in ftrace's own buffers, which perf's samples do not have;
 * the formats of ftrace's own events; those of tracepoints, by system; symbols, which perf leaves
 * out; strings. Each text has its size before it. */
#include "decode/print/trace_formats.h"

#include <string.h>

#include "decode/base/byte_reader.h"
#include "decode/base/error.h"
#include "decode/base/vec.h"

/* NULL where it does not end. */
static const char *take_string(struct byte_reader *reader)
{
	const char *string = (const char *)reader->left.data;
	size_t length = reader->left.size ? strnlen(string, reader->left.size) : 0;

	if (length == reader->left.size) {
		reader->is_bad = true;
		return NULL;
	}
	(void)byte_reader_take(reader, length + 1);
	return string;
}

static void read_head(struct byte_reader *reader, struct trace_formats *ret)
{
	static const char magic[] = "\x17\x08"
				    "Dtracing";
	struct bytes start = byte_reader_take(reader, sizeof(magic) - 1);
	bool is_big_endian;

	reader->is_bad |= start.size != sizeof(magic) - 1 ||
			  memcmp(start.data, magic, sizeof(magic) - 1) != 0;
	(void)take_string(reader); /* the version */
	is_big_endian = byte_reader_number(reader, 1);
	ret->long_size = (unsigned)byte_reader_number(reader, 1);
	reader->is_bad |= is_big_endian || (ret->long_size != 4 && ret->long_size != 8);
	(void)byte_reader_number(reader, 4); /* the size of a page */
	for (unsigned i = 0; i < 2; i++) {
		(void)take_string(reader);
		(void)byte_reader_sized(reader, 8);
	}
}

static int read_system(struct byte_reader *reader, const char *system, struct trace_formats *ret)
{
	uint64_t count = byte_reader_number(reader, 4);

	for (uint64_t i = 0; i < count && !reader->is_bad; i++) {
		struct trace_format format = { system, byte_reader_sized(reader, 8) };

		if (!reader->is_bad && format.text.size && !vec_push(&ret->list, format))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

int trace_formats_read(struct bytes section, struct trace_formats *ret)
{
	struct byte_reader reader = { .left = section };
	uint64_t systems;
	int r = 0;

	read_head(&reader, ret);
	if (!reader.is_bad)
		r = read_system(&reader, "ftrace", ret);
	systems = byte_reader_number(&reader, 4);
	for (uint64_t i = 0; i < systems && !reader.is_bad && !r; i++) {
		const char *system = take_string(&reader);

		r = read_system(&reader, system, ret);
	}
	(void)byte_reader_sized(&reader, 4);
	ret->strings = byte_reader_sized(&reader, 4);
	return r || !reader.is_bad ? r : -PTVM_BAD_INPUT;
}

void trace_formats_free(struct trace_formats *formats)
{
	vec_free(&formats->list);
}
