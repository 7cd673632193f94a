#include "host/vm/domain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/vm/breakable_call.h"
#include "host/vm/libvirt_calls.h"

#define FIRST "11111111-2222-3333-4444-555555555555"
#define SECOND "66666666-7777-8888-9999-aaaaaaaaaaaa"

/* A libvirt that has these domains. What it fails with is said by virGetLastErrorMessage(). */
static struct fake {
	struct {
		const char *name, *uuid;
		int state, id; /* -1: it is not active */
		bool has_no_state, has_no_uuid;
	} domains[3];
	bool is_missing, is_down, has_no_uri, has_no_count;
	bool says_nothing;                  /* of an error */
	unsigned long version, vmm_version; /* 0: it does not tell */
	char *agent_reply, *monitor_reply;  /* taken over; NULL: there is none */
	bool monitor_fails, memory_fails;

	char uri[64];
	bool is_read_only;
	int loaded, connected, taken; /* less what was given back */
	char command[64];
	int timeout;
	unsigned flags;
	unsigned long long address;
	size_t size;
	bool is_quiet; /* an error handler was set before anything could fail */
	bool hangs;

	struct {
		void (*run)(void *context);
		void (*drop)(void *context);
		void *context; /* NULL: none does */
	} hanging;             /* the call that hangs */
} fake;

static struct domain_link *link;
static struct ptvm_error error;

/* Both are given out as pointers that mean nothing to anybody else. */
static virDomainPtr take(size_t i)
{
	if (i == 3)
		return NULL;
	fake.taken++;
	return (virDomainPtr)(void *)&fake.domains[i];
}

static size_t index_of(virDomainPtr domain)
{
	return (size_t)((char *)domain - (char *)fake.domains) / sizeof(fake.domains[0]);
}

static virConnectPtr connect_to(const char *uri, bool is_read_only)
{
	assert_true(fake.is_quiet);
	(void)snprintf(fake.uri, sizeof(fake.uri), "%s", uri);
	fake.is_read_only = is_read_only;
	if (fake.is_down)
		return NULL;
	fake.connected++;
	return (virConnectPtr)(void *)&fake;
}

static int fake_virConnectClose(virConnectPtr connection)
{
	return --fake.connected;
}

static int fake_virConnectGetLibVersion(virConnectPtr connection, unsigned long *version)
{
	*version = fake.version;
	return fake.version ? 0 : -1;
}

static char *fake_virConnectGetURI(virConnectPtr connection)
{
	return fake.has_no_uri ? NULL : strdup(fake.uri);
}

/* 0 where the driver does not tell, as its documentation has it. */
static int fake_virConnectGetVersion(virConnectPtr connection, unsigned long *version)
{
	*version = fake.vmm_version;
	return 0;
}

static int fake_virConnectNumOfDomains(virConnectPtr connection)
{
	return fake.has_no_count ? -1 : 2;
}

static virConnectPtr fake_virConnectOpen(const char *uri)
{
	return connect_to(uri, false);
}

static virConnectPtr fake_virConnectOpenReadOnly(const char *uri)
{
	return connect_to(uri, true);
}

static int fake_virDomainFree(virDomainPtr domain)
{
	fake.taken--;
	return 0;
}

static unsigned fake_virDomainGetID(virDomainPtr domain)
{
	return (unsigned)fake.domains[index_of(domain)].id;
}

static const char *fake_virDomainGetName(virDomainPtr domain)
{
	return fake.domains[index_of(domain)].name;
}

static int fake_virDomainGetState(virDomainPtr domain, int *state, int *reason, unsigned flags)
{
	*state = fake.domains[index_of(domain)].state;
	return fake.domains[index_of(domain)].has_no_state ? -1 : 0;
}

static int fake_virDomainGetUUIDString(virDomainPtr domain, char *uuid)
{
	(void)strcpy(uuid, fake.domains[index_of(domain)].uuid);
	return fake.domains[index_of(domain)].has_no_uuid ? -1 : 0;
}

static int fake_virDomainIsActive(virDomainPtr domain)
{
	return fake.domains[index_of(domain)].id >= 0;
}

static virDomainPtr fake_virDomainLookupByID(virConnectPtr connection, int id)
{
	size_t i = 0;

	while (i < 3 && (!fake.domains[i].name || fake.domains[i].id != id))
		i++;
	return take(i);
}

static virDomainPtr fake_virDomainLookupByName(virConnectPtr connection, const char *name)
{
	size_t i = 0;

	while (i < 3 && (!fake.domains[i].name || strcmp(fake.domains[i].name, name)))
		i++;
	return take(i);
}

static virDomainPtr fake_virDomainLookupByUUIDString(virConnectPtr connection, const char *uuid)
{
	size_t i = 0;

	while (i < 3 && (!fake.domains[i].uuid || strcmp(fake.domains[i].uuid, uuid)))
		i++;
	return take(i);
}

static int fake_virDomainMemoryPeek(virDomainPtr domain, unsigned long long address, size_t size,
				    void *data, unsigned flags)
{
	fake.address = address;
	fake.size = size;
	fake.flags = flags;
	memset(data, 'm', size);
	return fake.memory_fails ? -1 : 0;
}

static char *fake_virDomainQemuAgentCommand(virDomainPtr domain, const char *command, int timeout,
					    unsigned flags)
{
	(void)snprintf(fake.command, sizeof(fake.command), "%s", command);
	fake.timeout = timeout;
	return fake.agent_reply;
}

static int fake_virDomainQemuMonitorCommand(virDomainPtr domain, const char *command, char **reply,
					    unsigned flags)
{
	(void)snprintf(fake.command, sizeof(fake.command), "%s", command);
	fake.flags = flags;
	*reply = fake.monitor_reply;
	return fake.monitor_fails ? -1 : 0;
}

static const char *fake_virGetLastErrorMessage(void)
{
	return fake.says_nothing ? NULL : "it is broken";
}

static void fake_virSetErrorFunc(void *context, virErrorFunc handler)
{
	fake.is_quiet = handler;
}

/* In the place of libvirt_calls.c. */
int libvirt_load(struct libvirt_calls *ret, struct ptvm_error *why)
{
	if (fake.is_missing)
		return ptvm_fail(why, PTVM_SYSTEM, "not installed");
#define FAKE(name) ret->name = fake_##name;
	LIBVIRT_CALLS(FAKE)
#undef FAKE
	fake.loaded++;
	ret->library = &fake;
	return 0;
}

void libvirt_unload(struct libvirt_calls *calls)
{
	if (calls->library)
		fake.loaded--;
}

/* In the place of breakable_call.c. */
bool breakable_call(void (*run)(void *context), void (*drop)(void *context), void *context,
		    int64_t patience_ms, int64_t limit_ms)
{
	assert_true(patience_ms > 5000); /* what an agent has */
	assert_true(limit_ms > 30000);   /* what libvirt has to serve others first */
	if (!fake.hangs) {
		run(context);
		return true;
	}
	assert_null(fake.hanging.context);
	fake.hanging.run = run;
	fake.hanging.drop = drop;
	fake.hanging.context = context;
	return false;
}

static int set_up(void **state)
{
	fake = (struct fake){ .domains = { { "7", FIRST, VIR_DOMAIN_RUNNING, 3 },
					   { "vm", SECOND, VIR_DOMAIN_SHUTOFF, -1 },
					   { "third", "u", VIR_DOMAIN_PAUSED, 7 } },
			      .version = 9000000,
			      .vmm_version = 7002001 };
	error = (struct ptvm_error){ 0 };
	(void)unsetenv("LIBVIRT_DEFAULT_URI");
	return domain_link_open("test:///", false, &link, NULL);
}

static int tear_down(void **state)
{
	fake.hangs = false;
	domain_link_close(link);
	assert_int_equal(fake.taken, 0);
	assert_int_equal(fake.connected, 0);
	assert_int_equal(fake.loaded, 0);
	return 0;
}

static void assert_opens(const char *uri, const char *expected)
{
	struct domain_link *other;

	assert_int_equal(domain_link_open(uri, true, &other, NULL), 0);
	domain_link_close(other);
	assert_string_equal(fake.uri, expected);
}

static void the_uri_is_given_or_preset_or_the_default(void **state)
{
	assert_opens("test:///x", "test:///x");
	assert_opens(NULL, "qemu:///system");
	assert_int_equal(setenv("LIBVIRT_DEFAULT_URI", "qemu+ssh://h/", 1), 0);
	assert_opens(NULL, "qemu+ssh://h/");
	assert_opens("test:///x", "test:///x");
	assert_int_equal(setenv("LIBVIRT_DEFAULT_URI", "", 1), 0);
	assert_opens(NULL, "qemu:///system");
}

static void a_link_may_be_read_only(void **state)
{
	assert_false(fake.is_read_only);
	assert_opens("test:///", "test:///");
	assert_true(fake.is_read_only);
}

static void a_link_that_fails_says_to_what(void **state)
{
	struct domain_link *none = NULL;

	fake.is_down = true;
	assert_int_equal(domain_link_open(NULL, true, &none, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "qemu:///system: it is broken");
	error = (struct ptvm_error){ 0 };
	fake.says_nothing = true;
	assert_int_equal(domain_link_open("x", true, &none, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "x: no reason is known");
	error = (struct ptvm_error){ 0 };
	fake.is_missing = true;
	assert_int_equal(domain_link_open("x", true, &none, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "not installed");
	assert_null(none);
	domain_link_close(NULL);
}

static void a_link_is_described_in_a_line(void **state)
{
	char text[64];

	assert_int_equal(domain_link_text(link, text, sizeof(text), NULL), 0);
	assert_string_equal(text, "test:///, version 9.0.0, 2 running");
}

static void assert_indescribable(const char *message)
{
	char text[64];

	error = (struct ptvm_error){ 0 };
	assert_int_equal(domain_link_text(link, text, sizeof(text), &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, message);
}

static void a_link_that_broke_is_told(void **state)
{
	fake.version = 0;
	assert_indescribable("test:///: it is broken");
	fake.version = 1;
	fake.has_no_count = true;
	assert_indescribable("test:///: it is broken");
	fake.has_no_count = false;
	fake.has_no_uri = true;
	assert_indescribable("libvirt: it is broken");
}

static void versions_have_three_parts(void **state)
{
	struct domain_versions versions;

	fake.version = 12034056;
	domain_link_versions(link, &versions);
	assert_string_equal(versions.libvirt, "12.34.56");
	assert_string_equal(versions.vmm, "7.2.1");
	fake.version = fake.vmm_version = 0;
	domain_link_versions(link, &versions);
	assert_string_equal(versions.libvirt, "");
	assert_string_equal(versions.vmm, "");
}

static void assert_finds(const char *name, const char *expected)
{
	struct domain domain;

	memset(&domain, 0xff, sizeof(domain));
	assert_int_equal(domain_find(link, name, &domain, NULL), 0);
	assert_string_equal(domain.name, expected);
}

static void names_go_before_uuids_and_ids(void **state)
{
	assert_finds("vm", "vm");
	assert_finds(SECOND, "vm");
	assert_finds("7", "7"); /* which is also the third one's id */
	assert_finds("3", "7");
}

static void what_is_no_domain_is_not_found(void **state)
{
	static const char *const names[] = { "", "other", "3x", "-1", "0x3", "8", "4294967299" };
	struct domain domain;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(domain_find(link, names[i], &domain, NULL), -PTVM_NOT_FOUND);
	assert_int_equal(domain_find(link, "other", &domain, &error), -PTVM_NOT_FOUND);
	assert_string_equal(error.message, "libvirt knows no domain 'other'");
}

static void assert_state(int state, bool is_running, const char *word)
{
	struct domain domain;

	fake.domains[0].state = state;
	assert_int_equal(domain_find(link, FIRST, &domain, NULL), 0);
	assert_string_equal(domain.state, word);
	assert_int_equal(domain.is_running, is_running);
	assert_string_equal(domain.uuid, FIRST);
	assert_int_equal(domain.id, 3);
}

static void states_are_words(void **state)
{
	assert_state(VIR_DOMAIN_NOSTATE, false, "in no state");
	assert_state(VIR_DOMAIN_RUNNING, true, "running");
	assert_state(VIR_DOMAIN_BLOCKED, true, "blocked");
	assert_state(VIR_DOMAIN_PAUSED, false, "paused");
	assert_state(VIR_DOMAIN_SHUTDOWN, false, "shutting down");
	assert_state(VIR_DOMAIN_SHUTOFF, false, "shut off");
	assert_state(VIR_DOMAIN_CRASHED, false, "crashed");
	assert_state(VIR_DOMAIN_PMSUSPENDED, false, "suspended");
	assert_state(VIR_DOMAIN_PMSUSPENDED + 1, false, "unknown");
	assert_state(-1, false, "unknown");
}

static void a_domain_that_does_not_run_has_no_id(void **state)
{
	struct domain domain;

	assert_int_equal(domain_find(link, "vm", &domain, NULL), 0);
	assert_int_equal(domain.id, -1);
	assert_false(domain.is_running);
}

static void a_domain_that_vanished_is_told(void **state)
{
	struct domain domain;

	fake.domains[0].has_no_state = true;
	assert_int_equal(domain_find(link, "7", &domain, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "7: it is broken");
	fake.domains[1].has_no_uuid = true;
	assert_int_equal(domain_find(link, "vm", &domain, NULL), -PTVM_SYSTEM);
}

static void an_agent_answers(void **state)
{
	char *reply = NULL;

	fake.agent_reply = strdup("{}");
	assert_int_equal(domain_agent_ask(link, FIRST, "{\"execute\":\"x\"}", &reply, NULL), 0);
	assert_string_equal(reply, "{}");
	assert_string_equal(fake.command, "{\"execute\":\"x\"}");
	assert_in_range(fake.timeout, 1, 10); /* seconds */
	free(reply);
}

static void an_agent_that_does_not_is_told(void **state)
{
	char *reply = NULL;

	assert_int_equal(domain_agent_ask(link, FIRST, "{}", &reply, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "guest agent: it is broken");
	fake.command[0] = '\0';
	assert_int_equal(domain_agent_ask(link, "vm", "{}", &reply, NULL), -PTVM_SYSTEM);
	assert_string_equal(fake.command, ""); /* a name is no UUID */
	assert_null(reply);
}

static void a_monitor_answers_people(void **state)
{
	char *reply = NULL;

	fake.monitor_reply = strdup("CPU#0");
	assert_int_equal(domain_monitor_ask(link, FIRST, "info registers", &reply, NULL), 0);
	assert_string_equal(reply, "CPU#0");
	assert_string_equal(fake.command, "info registers");
	assert_int_equal(fake.flags, VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP);
	free(reply);
}

static void a_monitor_that_does_not_is_told(void **state)
{
	char *reply = NULL;

	assert_int_equal(domain_monitor_ask(link, FIRST, "x", &reply, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "QEMU's monitor: it is broken");
	fake.monitor_fails = true;
	assert_int_equal(domain_monitor_ask(link, FIRST, "x", &reply, NULL), -PTVM_SYSTEM);
	assert_int_equal(domain_monitor_ask(link, "none", "x", &reply, NULL), -PTVM_SYSTEM);
	assert_null(reply);
}

static void memory_is_the_guests_physical_one(void **state)
{
	char data[4] = "";

	assert_int_equal(domain_memory_read(link, FIRST, 0x123456789abc, data, 3, NULL), 0);
	assert_string_equal(data, "mmm");
	assert_int_equal(fake.address, 0x123456789abc);
	assert_int_equal(fake.size, 3);
	assert_int_equal(fake.flags, VIR_MEMORY_PHYSICAL);
}

static void memory_that_cannot_be_read_is_told(void **state)
{
	char data[4];

	fake.memory_fails = true;
	assert_int_equal(domain_memory_read(link, FIRST, 0, data, 4, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "guest memory: it is broken");
	fake.memory_fails = false;
	assert_int_equal(domain_memory_read(link, "none", 0, data, 4, NULL), -PTVM_SYSTEM);
}

/* It may still return at some time, and what it uses is still there then. */
static void a_call_that_hangs_is_left_behind(void **state)
{
	static struct domain_link *volatile stuck;
	char uuid[] = FIRST, command[] = "{}", *reply = NULL, data[4];
	struct domain domain;

	stuck = link; /* nobody frees it */
	fake.hangs = true;
	assert_int_equal(domain_agent_ask(link, uuid, command, &reply, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "libvirtd does not answer");
	assert_null(reply);
	/* Nobody asks again. */
	assert_int_equal(domain_agent_ask(link, FIRST, "{}", &reply, NULL), -PTVM_SYSTEM);
	assert_int_equal(domain_monitor_ask(link, FIRST, "x", &reply, NULL), -PTVM_SYSTEM);
	assert_int_equal(domain_find(link, FIRST, &domain, NULL), -PTVM_SYSTEM);
	assert_int_equal(domain_memory_read(link, FIRST, 0, data, 4, NULL), -PTVM_SYSTEM);
	uuid[0] = command[0] = '?';
	fake.agent_reply = strdup("{}");
	fake.hanging.run(fake.hanging.context);
	assert_string_equal(fake.command, "{}");
	fake.hanging.drop(fake.hanging.context);
	/* The link stays as it is. */
	domain_link_close(stuck);
	assert_int_equal(fake.connected, 1);
	fake.connected = fake.loaded = 0;
}

static void so_is_a_connection(void **state)
{
	static void *volatile left;
	struct domain_link *none = NULL;

	fake.hangs = true;
	assert_int_equal(domain_link_open("x", true, &none, &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "libvirtd does not answer");
	assert_null(none);
	left = fake.hanging.context; /* it never returns */
	assert_non_null(left);
}

/* What hung returns at last, and nobody uses the link any more. */
static void return_at_last(void)
{
	assert_non_null(fake.hanging.context);
	fake.hanging.run(fake.hanging.context);
	fake.hanging.drop(fake.hanging.context);
	fake.hanging.context = NULL;
}

static void nobody_waits_for_the_end_of_one(void **state)
{
	static struct domain_link *volatile stuck;

	stuck = link;
	link = NULL;
	fake.hangs = true;
	domain_link_close(stuck);
	assert_int_equal(fake.connected, 1);
	return_at_last();
	assert_int_equal(fake.connected, 0);
	assert_int_equal(fake.loaded, 1);
	domain_link_close(stuck);
	fake.loaded = 0;
}

static void nor_for_versions(void **state)
{
	static struct domain_link *volatile stuck;
	struct domain_versions versions = { "1", "2" };
	char text[64];

	stuck = link;
	fake.hangs = true;
	domain_link_versions(stuck, &versions);
	assert_string_equal(versions.libvirt, "");
	assert_string_equal(versions.vmm, "");
	return_at_last();
	assert_int_equal(domain_link_text(stuck, text, sizeof(text), &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "libvirtd does not answer");
	fake.connected = fake.loaded = 0;
}

static void nor_for_a_description(void **state)
{
	static struct domain_link *volatile stuck;
	char text[64];

	stuck = link;
	fake.hangs = true;
	assert_int_equal(domain_link_text(stuck, text, sizeof(text), &error), -PTVM_SYSTEM);
	assert_string_equal(error.message, "libvirtd does not answer");
	return_at_last();
	fake.connected = fake.loaded = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_uri_is_given_or_preset_or_the_default),
		TEST(a_link_may_be_read_only),
		TEST(a_link_that_fails_says_to_what),
		TEST(a_link_is_described_in_a_line),
		TEST(a_link_that_broke_is_told),
		TEST(versions_have_three_parts),
		TEST(names_go_before_uuids_and_ids),
		TEST(what_is_no_domain_is_not_found),
		TEST(states_are_words),
		TEST(a_domain_that_does_not_run_has_no_id),
		TEST(a_domain_that_vanished_is_told),
		TEST(an_agent_answers),
		TEST(an_agent_that_does_not_is_told),
		TEST(a_monitor_answers_people),
		TEST(a_monitor_that_does_not_is_told),
		TEST(memory_is_the_guests_physical_one),
		TEST(memory_that_cannot_be_read_is_told),
		TEST(a_call_that_hangs_is_left_behind),
		TEST(so_is_a_connection),
		TEST(nobody_waits_for_the_end_of_one),
		TEST(nor_for_versions),
		TEST(nor_for_a_description),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
