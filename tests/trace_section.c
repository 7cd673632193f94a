#include "tests/trace_section.h"

#include <stdio.h>
#include <string.h>

static const char fields[] = "name: step\n"
			     "ID: 564\n"
			     "format:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
			     "\n"
			     "\tfield:unsigned int count;\toffset:8;\tsize:4;\tsigned:0;\n"
			     "\tfield:unsigned int kind;\toffset:12;\tsize:4;\tsigned:0;\n"
			     "\tfield:void * caller;\toffset:16;\tsize:8;\tsigned:0;\n"
			     "\n"
			     "print fmt: ";

static uint8_t *put(uint8_t *p, const void *data, size_t size)
{
	memcpy(p, data, size);
	return p + size;
}

static uint8_t *put_number(uint8_t *p, uint64_t value, size_t size)
{
	return put(p, &value, size);
}

static uint8_t *put_string(uint8_t *p, const char *string)
{
	return put(p, string, strlen(string) + 1);
}

struct bytes trace_section_make(const char *print, uint8_t *to)
{
	static const char strings[] = "0xffffffff82000000 : \"a string\"\n";
	char format[2048];
	uint8_t *p = put_string(to, "\x17\x08"
				    "Dtracing0.6");

	p = put_number(p, 0, 1);
	p = put_number(p, 8, 1);
	p = put_number(p, 4096, 4);
	p = put_number(put_string(p, "header_page"), 0, 8);
	p = put_number(put_string(p, "header_event"), 0, 8);
	p = put_number(p, 0, 4);
	p = put_string(put_number(p, 1, 4), "test");
	(void)snprintf(format, sizeof(format), "%s%s\n", fields, print);
	p = put_number(put_number(p, 1, 4), strlen(format), 8);
	p = put(p, format, strlen(format));
	p = put_number(p, 0, 4);
	p = put_number(p, sizeof(strings) - 1, 4);
	p = put(p, strings, sizeof(strings) - 1);
	return (struct bytes){ to, (size_t)(put_number(p, 0, 8) - to) };
}
