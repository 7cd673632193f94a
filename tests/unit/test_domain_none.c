/* domain_none: what a ptvm says that was built without libvirt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/vm/domain.h"

static void assert_refused(int r, struct ptvm_error *error)
{
	assert_int_equal(r, -PTVM_SYSTEM);
	assert_string_equal(error->message, "this ptvm was built without libvirt");
	*error = (struct ptvm_error){ 0 };
}

static void every_question_is_refused(void **state)
{
	struct domain_link *link = NULL;
	struct ptvm_error error = { 0 };
	struct domain domain;
	char text[32], *reply;

	assert_refused(domain_link_open("test:///", true, &link, &error), &error);
	assert_null(link);
	assert_refused(domain_link_text(NULL, text, sizeof(text), &error), &error);
	assert_refused(domain_find(NULL, "vm", &domain, &error), &error);
	assert_refused(domain_agent_ask(NULL, "", "{}", &reply, &error), &error);
	assert_refused(domain_monitor_ask(NULL, "", "info", &reply, &error), &error);
	assert_refused(domain_memory_read(NULL, "", 0, text, sizeof(text), &error), &error);
	domain_link_close(link);
}

static void no_version_is_known(void **state)
{
	struct domain_versions versions;

	memset(&versions, 'x', sizeof(versions));
	domain_link_versions(NULL, &versions);
	assert_string_equal(versions.libvirt, "");
	assert_string_equal(versions.vmm, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_question_is_refused),
		cmocka_unit_test(no_version_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
