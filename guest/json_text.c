#include "guest/json_text.h"

#include <stdio.h>

json_t *json_text(const char *from)
{
	char copy[JSON_TEXT_BYTES];
	json_t *json = json_string(from);

	if (json)
		return json;
	(void)snprintf(copy, sizeof(copy), "%s", from);
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return json_string(copy);
}
