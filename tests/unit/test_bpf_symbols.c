#include "guest/bpf_symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/text.h"
#include "tests/fake_memory.h"

/* A list whose head is in the kernel's image, and the rest anywhere. */
enum { PAGE = FAKE_MEMORY_PAGE, LONG = 512, SHORT = 128, APART = 1024, NAME_AT = 16, MOST = 8 };

static const uint64_t image_end = 0xffffffff82000000, head = 0xffffffff81fff000,
		      code = 0xffffffffc0147000, list = 0xffff888003456000;

static struct fixture {
	struct fake_memory memory;
	struct page_walk walk;
	struct text text;
	uint8_t *head, *items; /* in memory */
	uint64_t last;         /* node */
	unsigned count;
} fixture;

static void put(uint8_t *to, uint64_t value)
{
	memcpy(to, &value, sizeof(value));
}

static int set_up(void **state)
{
	static const uint8_t none[MOST * APART];

	memset(&fixture, 0, sizeof(fixture));
	fake_memory_init(&fixture.memory, 32 * PAGE, false);
	page_walk_init(&fixture.walk, &fixture.memory.reader, fixture.memory.root);
	fixture.head = fake_memory_put(&fixture.memory, head, "", 1, FAKE_MEMORY_DATA);
	fixture.items =
		fake_memory_put(&fixture.memory, list, none, sizeof(none), FAKE_MEMORY_DATA);
	put(fixture.head, head);
	fixture.last = head;
	return 0;
}

static int tear_down(void **state)
{
	text_free(&fixture.text);
	fake_memory_deinit(&fixture.memory);
	return 0;
}

/* Append one with so much room for its name. Returns it. */
static uint8_t *add(size_t room, uint64_t start, uint64_t size, const char *name)
{
	uint8_t *last = fixture.count ? fixture.items + (fixture.last - list) : fixture.head;
	size_t at = fixture.count++ * APART;
	uint64_t node = list + at + NAME_AT + room;

	put(fixture.items + at, start);
	put(fixture.items + at + 8, start + size);
	memcpy(fixture.items + at + NAME_AT, name, strlen(name) + 1);
	put(fixture.items + at + NAME_AT + room, head);
	put(fixture.items + at + NAME_AT + room + 8, fixture.last);
	put(last, node);
	fixture.last = node;
	return fixture.items + at;
}

static void assert_prints(const char *expected)
{
	bpf_symbols_print(&fixture.walk, head, image_end, &fixture.text);
	text_putc(&fixture.text, '\0');
	assert_string_equal(fixture.text.data, expected);
	fixture.text.size = 0;
}

static void an_empty_list_has_none(void **state)
{
	assert_prints("");
}

static void programs_are_printed_in_order(void **state)
{
	const size_t rooms[] = { LONG, SHORT };

	for (size_t i = 0; i < 2; i++) {
		tear_down(state);
		set_up(state);
		add(rooms[i], code, 0x40, "bpf_prog_0123456789abcdef_main");
		add(rooms[i], code - 0x1000, 0x1000, "bpf_trampoline_42");
		assert_prints("ffffffffc0147000 t bpf_prog_0123456789abcdef_main\t[bpf]\n"
			      "ffffffffc0146000 t bpf_trampoline_42\t[bpf]\n");
	}
}

static void the_list_ends_where_it_makes_no_sense(void **state)
{
	static const char first[] = "ffffffffc0147000 t bpf_prog_1\t[bpf]\n";
	static const struct {
		uint64_t start, size;
		const char *name;
	} wrong[] = {
		{ image_end - 8, 0x40, "bpf_prog_2" },
		{ 0xffffffffff000000, 0x40, "bpf_prog_2" },
		{ code, 0, "bpf_prog_2" },
		{ code, -(uint64_t)8, "bpf_prog_2" },
		{ code, (4 << 20) + 1, "bpf_prog_2" },
		{ code, 0x40, "bpg_prog_2" },
		{ code, 0x40, "bpf_\n" },
		{ code, 0x40, "" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		tear_down(state);
		set_up(state);
		add(LONG, code, 0x40, "bpf_prog_1");
		add(LONG, wrong[i].start, wrong[i].size, wrong[i].name);
		add(LONG, code, 0x40, "bpf_prog_3");
		assert_prints(first);
	}
}

static void a_name_has_an_end(void **state)
{
	uint8_t *ksym = add(LONG, code, 0x40, "bpf_");

	memset(ksym + NAME_AT + 4, 'x', LONG - 4);
	assert_prints("");
	ksym[NAME_AT + LONG - 1] = '\0';
	bpf_symbols_print(&fixture.walk, head, image_end, &fixture.text);
	assert_int_equal(fixture.text.size, 16 + 3 + LONG - 1 + 7);
}

static void a_list_that_does_not_lead_back_ends(void **state)
{
	uint8_t *ksym;

	add(LONG, code, 0x40, "bpf_prog_1");
	ksym = add(LONG, code, 0x40, "bpf_prog_2");
	put(ksym + NAME_AT + LONG + 8, head);
	assert_prints("ffffffffc0147000 t bpf_prog_1\t[bpf]\n");
	put(ksym + NAME_AT + LONG + 8, list + NAME_AT + LONG);
	put(ksym + NAME_AT + LONG, 8); /* and on to nowhere */
	assert_prints(
		"ffffffffc0147000 t bpf_prog_1\t[bpf]\nffffffffc0147000 t bpf_prog_2\t[bpf]\n");
}

/* Whoever points back to two others is not in that list. */
static void a_list_that_goes_in_a_circle_ends(void **state)
{
	uint8_t *ksym;

	add(SHORT, code, 0x40, "bpf_prog_1");
	ksym = add(SHORT, code, 0x40, "bpf_prog_2");
	put(ksym + NAME_AT + SHORT, list + NAME_AT + SHORT);
	assert_prints(
		"ffffffffc0147000 t bpf_prog_1\t[bpf]\nffffffffc0147000 t bpf_prog_2\t[bpf]\n");
}

static void memory_that_is_gone_has_none(void **state)
{
	add(LONG, code, 0x40, "bpf_prog_1");
	fixture.memory.fails = true;
	assert_prints("");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_empty_list_has_none),
		TEST(programs_are_printed_in_order),
		TEST(the_list_ends_where_it_makes_no_sense),
		TEST(a_name_has_an_end),
		TEST(a_list_that_does_not_lead_back_ends),
		TEST(a_list_that_goes_in_a_circle_ends),
		TEST(memory_that_is_gone_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
