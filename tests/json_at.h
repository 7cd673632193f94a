/* What is at a place in JSON. */
#pragma once

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/** The value at a path of keys and, as digits, of places in arrays: "machines.0.pid". */
static inline json_t *json_at(json_t *json, const char *path)
{
	char copy[128], *rest = copy, *step;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	while ((step = strsep(&rest, ".")))
		json = json_is_array(json) ? json_array_get(json, (size_t)atoi(step))
					   : json_object_get(json, step);
	return json;
}

static inline void assert_json_text(json_t *json, const char *path, const char *expected)
{
	assert_non_null(json_at(json, path));
	assert_string_equal(json_string_value(json_at(json, path)), expected);
}

static inline void assert_json_number(json_t *json, const char *path, json_int_t expected)
{
	assert_true(json_is_integer(json_at(json, path)));
	assert_int_equal(json_integer_value(json_at(json, path)), expected);
}
