#include "decode/pt_dump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What is dumped of the bytes; the caller frees it. */
static char *dump(const void *bytes, size_t size)
{
	char *data = NULL;
	size_t data_size;
	FILE *file = open_memstream(&data, &data_size);
	struct page_trail nowhere = { .mapping = &(struct bytes){ NULL, 0 } };

	assert_non_null(file);
	pt_dump(bytes, size, 0, &nowhere, file);
	assert_int_equal(fclose(file), 0);
	return data;
}

static void assert_dump(const void *bytes, size_t size, const char *expected)
{
	char *found = dump(bytes, size);

	assert_string_equal(found, expected);
	free(found);
}

static void a_line_has_offset_bytes_and_words(void **state)
{
	assert_dump("\x19\1\2\3\4\5\6\7\x59\x2a", 10,
		    ".  00000000:  19 01 02 03 04 05 06 07                         "
		    "TSC 0x7060504030201\n"
		    ".  00000008:  59 2a                                           MTC 0x2a\n");
}

static void a_psb_fills_the_columns(void **state)
{
	assert_dump("\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82", 16,
		    ".  00000000:  02 82 02 82 02 82 02 82 02 82 02 82 02 82 02 82 PSB\n");
}

static void padding_belongs_to_the_packet_before_up_to_eight_bytes(void **state)
{
	assert_dump("\x02\x23\0\0\0\0\0\0\0\x02\xf3", 11,
		    ".  00000000:  02 23 00 00 00 00 00 00                         PSBEND\n"
		    ".  00000008:  00                                              PAD\n"
		    ".  00000009:  02 f3                                           OVF\n");
}

static void what_is_no_packet_costs_one_byte(void **state)
{
	assert_dump("\xc9\x06", 2,
		    ".  00000000:  c9                                              Bad packet!\n"
		    ".  00000001:  06                                              TNT T (1)\n");
}

static void a_packet_cut_short_is_bad(void **state)
{
	assert_dump("\x59", 1,
		    ".  00000000:  59                                              Bad packet!\n");
}

static void items_are_told_from_branches_by_their_block(void **state)
{
	assert_dump("\x02\x63\x84\x04\x44\x33\x22\x11\x02\x33\x04", 11,
		    ".  00000000:  02 63 84                                        "
		    "BBP SZ 4-byte Type 0x4\n"
		    ".  00000003:  04 44 33 22 11                                  "
		    "BIP ID 0x00 Value 0x11223344\n"
		    ".  00000008:  02 33                                           BEP IP:0\n"
		    ".  0000000a:  04                                              TNT N (1)\n");
}

/* More than the buffer for text holds. */
static void a_long_trace_is_dumped_to_its_end(void **state)
{
	enum { COUNT = 20000 };
	char *bytes = malloc(COUNT), *found, *p;
	size_t lines = 0;

	assert_non_null(bytes);
	memset(bytes, 6, COUNT);
	found = dump(bytes, COUNT);
	for (p = found; (p = strstr(p, "TNT T (1)\n")); p++)
		lines++;
	assert_int_equal(lines, COUNT);
	assert_non_null(strstr(found, ".  00004e1f:  06 "));
	free(found);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_offset_bytes_and_words),
		cmocka_unit_test(a_psb_fills_the_columns),
		cmocka_unit_test(padding_belongs_to_the_packet_before_up_to_eight_bytes),
		cmocka_unit_test(what_is_no_packet_costs_one_byte),
		cmocka_unit_test(a_packet_cut_short_is_bad),
		cmocka_unit_test(items_are_told_from_branches_by_their_block),
		cmocka_unit_test(a_long_trace_is_dumped_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
