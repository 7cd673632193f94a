#include "decode/code/machines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"

/* The host and guests of these pids. */
static struct machines make(const int32_t *pids, size_t count)
{
	struct machines machines = { .host = machine_new(0, false) };
	struct machine *guest;

	for (size_t i = 0; i < count; i++)
		assert_int_equal(machines_guest_add(&machines, pids[i], &guest), 0);
	return machines;
}

static void a_guest_is_made_once(void **state)
{
	struct machines machines = make((const int32_t[]){ 7, 3, 7 }, 3);

	assert_int_equal(machines.guest_count, 2);
	assert_int_equal(machines.guests[0]->pid, 3);
	assert_int_equal(machines.guests[1]->pid, 7);
	machines_free(&machines);
}

static void a_guest_is_found_by_its_pid(void **state)
{
	struct machines machines = make((const int32_t[]){ 7, 3 }, 2);

	assert_int_equal(machines_guest(&machines, 7)->pid, 7);
	assert_int_equal(machines_guest(&machines, 3)->pid, 3);
	assert_null(machines_guest(&machines, 5));
	machines_free(&machines);
}

static void the_default_guest_stands_for_others(void **state)
{
	struct machines machines = make((const int32_t[]){ 7, 0 }, 2);

	assert_int_equal(machines_guest(&machines, 7)->pid, 7);
	assert_int_equal(machines_guest(&machines, 5)->pid, 0);
	machines_free(&machines);
}

/* Another VM runs another kernel. */
static void the_only_guest_stands_for_an_unknown_one(void **state)
{
	struct machines machines = make((const int32_t[]){ 7 }, 1);

	assert_int_equal(machines_guest(&machines, -1)->pid, 7);
	assert_int_equal(machines_guest(&machines, 0)->pid, 7);
	assert_null(machines_guest(&machines, 5));
	machines.one_for_all = true;
	assert_ptr_equal(machines_guest(&machines, 7), machines.host);
	machines_free(&machines);
}

static void the_host_comes_before_its_guests(void **state)
{
	struct machines machines = make((const int32_t[]){ 7, 3 }, 2);
	size_t next = 0;

	assert_ptr_equal(machines_next(&machines, &next), machines.host);
	assert_int_equal(machines_next(&machines, &next)->pid, 3);
	assert_int_equal(machines_next(&machines, &next)->pid, 7);
	assert_null(machines_next(&machines, &next));
	machines_free(&machines);
}

static void there_may_be_guests_alone_or_none(void **state)
{
	struct machines machines = { 0 };
	struct machine *guest;
	size_t next = 0;

	assert_null(machines_next(&machines, &next));
	assert_null(machines_note(&machines, 0));
	assert_int_equal(machines_guest_add(&machines, 7, &guest), 0);
	next = 0;
	assert_ptr_equal(machines_next(&machines, &next), guest);
	assert_null(machines_next(&machines, &next));
	machines_free(&machines);
}

static void a_guest_of_which_nothing_is_known_is_noted_once(void **state)
{
	struct machines machines = make((const int32_t[]){ 7 }, 1);

	machines_note_files(&machines);
	assert_null(machines_note(&machines, 0));
	machines_miss_guest(&machines);
	machines_miss_guest(&machines);
	machines_note_files(&machines);
	assert_non_null(strstr(machines_note(&machines, 0), "kcore_dir__PID"));
	assert_null(machines_note(&machines, 1));
	machines_free(&machines);
}

static void notes_of_all_are_numbered(void **state)
{
	struct machines machines = make((const int32_t[]){ 7, 3 }, 2);

	machine_note(machines.guests[1], "of %d", 7);
	machine_note(machines.host, "of the host");
	machine_note(machines.host, "more\n");
	assert_string_equal(machines_note(&machines, 0), "of the host");
	assert_string_equal(machines_note(&machines, 1), "more?");
	assert_string_equal(machines_note(&machines, 2), "of 7");
	assert_null(machines_note(&machines, 3));
	machines_free(&machines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_guest_is_made_once),
		cmocka_unit_test(a_guest_is_found_by_its_pid),
		cmocka_unit_test(the_default_guest_stands_for_others),
		cmocka_unit_test(the_only_guest_stands_for_an_unknown_one),
		cmocka_unit_test(the_host_comes_before_its_guests),
		cmocka_unit_test(there_may_be_guests_alone_or_none),
		cmocka_unit_test(a_guest_of_which_nothing_is_known_is_noted_once),
		cmocka_unit_test(notes_of_all_are_numbered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
