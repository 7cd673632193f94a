#include "host/vm/guest_agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "guest/channel.h"
#include "tests/fake_domain.h"
#include "tests/fake_guest.h"

static const char uuid[] = "11111111-2222-3333-4444-555555555555";

static struct fixture {
	struct fake_tree tree;
	struct fake_agent agent;
	struct domain_link *link;
	struct guest_agent guest;
	struct ptvm_error error;
} fixture;

static int set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fake_tree_init(&fixture.tree);
	fake_tree_file(&fixture.tree, "0123456789", "proc/digits");
	fixture.agent.tree = &fixture.tree;
	fake_libvirt = (struct fake_libvirt){ .agent = &fixture.agent };
	(void)strcpy(fake_libvirt.domain.uuid, uuid);
	assert_int_equal(domain_link_open(NULL, false, &fixture.link, NULL), 0);
	fixture.guest = (struct guest_agent){ fixture.link, uuid };
	return 0;
}

static int tear_down(void **state)
{
	domain_link_close(fixture.link);
	assert_int_equal(fixture.agent.open, fixture.agent.closed);
	fake_tree_deinit(&fixture.tree);
	return 0;
}

static void an_agent_says_what_it_allows(void **state)
{
	struct agent_info info;

	fake_libvirt.agent_info = FAKE_AGENT_INFO("true", "false");
	assert_int_equal(guest_agent_info(fixture.link, uuid, &info, NULL), 0);
	assert_string_equal(info.version, "7.2.0");
	assert_true(info.can_read_files);
	assert_false(info.can_run);
}

static void no_answer_and_one_without_sense_are_told_apart(void **state)
{
	struct agent_info info;

	assert_int_equal(guest_agent_info(fixture.link, uuid, &info, &fixture.error), -PTVM_SYSTEM);
	assert_string_equal(fixture.error.message, "guest agent: no answer");
	fake_libvirt.agent_info = "{}";
	assert_int_equal(guest_agent_info(fixture.link, uuid, &info, NULL), -PTVM_BAD_INPUT);
}

/* By commands for files if there are `opens` of them, otherwise by programs. */
static void assert_reads(const char *info, int opens)
{
	struct channel *channel;
	char text[8];

	fake_libvirt.agent_info = info;
	fixture.agent.open = fixture.agent.closed = 0;
	assert_int_equal(guest_agent_channel(&fixture.guest, &channel), 0);
	assert_int_equal(channel_read_text(channel, "/proc/digits", text, 5, NULL), 4);
	assert_string_equal(text, "0123");
	channel_free(channel);
	assert_int_equal(fixture.agent.open, opens);
}

static void files_are_read_in_the_way_that_is_allowed(void **state)
{
	assert_reads(FAKE_AGENT_INFO("true", "true"), 1);
	assert_reads(FAKE_AGENT_INFO("true", "false"), 1);
	assert_reads(FAKE_AGENT_INFO("false", "true"), 0);
}

/* What it says to this is the better story. */
static void an_agent_that_allows_nothing_is_asked_for_files(void **state)
{
	assert_reads(FAKE_AGENT_INFO("false", "false"), 1);
	assert_reads(NULL, 1);
	assert_reads("{}", 1);
}

static void the_beginning_of_a_file_is_read_at_once(void **state)
{
	char text[4];

	fake_libvirt.agent_info = FAKE_AGENT_INFO("true", "true");
	assert_int_equal(guest_agent_read(fixture.link, uuid, "/proc/digits", text, 4, NULL), 3);
	assert_string_equal(text, "012");
	assert_int_equal(fixture.agent.open, 1);
	assert_int_equal(
		guest_agent_read(fixture.link, uuid, "/proc/none", text, 4, &fixture.error),
		-PTVM_SYSTEM);
	assert_string_equal(text, "");
	assert_int_equal(guest_agent_read(fixture.link, uuid, "proc", text, 4, NULL),
			 -PTVM_BAD_USAGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_agent_says_what_it_allows),
		TEST(no_answer_and_one_without_sense_are_told_apart),
		TEST(files_are_read_in_the_way_that_is_allowed),
		TEST(an_agent_that_allows_nothing_is_asked_for_files),
		TEST(the_beginning_of_a_file_is_read_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
