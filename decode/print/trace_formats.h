/* What samples of tracepoints look like: the texts of tracefs that a recording keeps, as they are.
 * Finds them; what they say is for tracepoint_text.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"

/** The format of one tracepoint, as in events/SYSTEM/NAME/format. */
struct trace_format {
	const char *system;
	struct bytes text;
};

/** Zero-initialise before use. Texts are those of the section, which must outlive this. */
struct trace_formats {
	struct {
		struct trace_format *items;
		size_t count, room;
	} list;
	struct bytes strings; /* printk_formats: texts of the kernel that fields point to */
	unsigned long_size;   /* bytes of a long of the traced kernel: 4 or 8 */
};

/**
 * Read the section of a recording (HEADER_TRACING_DATA).
 * Returns 0, -PTVM_BAD_INPUT (damaged: what came before is there) or -PTVM_NO_MEMORY;
 * trace_formats_free() in any case.
 */
int trace_formats_read(struct bytes section, struct trace_formats *ret);

/** Free the list (not the section); accepts zeroes. */
void trace_formats_free(struct trace_formats *formats);
