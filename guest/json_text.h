/* A string of JSON made of any bytes. Users and processes may have any in names, JSON takes only
 * UTF-8. */
#pragma once

#include <jansson.h>

enum { JSON_TEXT_BYTES = 256 }; /* of what is not UTF-8, more is cut */

/**
 * The string `from`; where that is not UTF-8, each byte beyond ASCII is a question mark.
 * Returns NULL where memory is out.
 */
json_t *json_text(const char *from);
