/* HEADER_TRACING_DATA made by hand: one tracepoint, test:step with number 0x234, whose samples have
 * a count at 8, a kind at 12 and a caller at 16. */
#pragma once

#include <stddef.h>

#include "decode/base/bytes.h"

enum { TRACE_SECTION_POINT = 0x234, TRACE_SECTION_MOST = 4096 };

/**
 * Make the section.
 *
 * @print  how samples are printed: `"%u", REC->count`
 * @to     TRACE_SECTION_MOST bytes that take it
 */
struct bytes trace_section_make(const char *print, uint8_t *to);
