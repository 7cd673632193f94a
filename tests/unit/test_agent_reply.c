#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "guest/agent_reply.h"

static void commands_count_where_they_are_enabled(void **state)
{
	static const char reply[] = "{\"return\":{\"version\":\"7.2\",\"supported_commands\":["
				    "{\"name\":\"guest-file-open\",\"enabled\":true},"
				    "{\"name\":\"guest-file-read\",\"enabled\":true},"
				    "{\"name\":\"guest-file-seek\",\"enabled\":true},"
				    "{\"name\":\"guest-file-close\",\"enabled\":true},"
				    "{\"name\":\"guest-exec\",\"enabled\":true},"
				    "{\"name\":\"guest-exec-status\",\"enabled\":false}]}}";
	struct agent_info info;

	assert_int_equal(agent_info_read(reply, &info, NULL), 0);
	assert_string_equal(info.version, "7.2");
	assert_true(info.can_read_files);
	assert_false(info.can_run);
}

static void files_need_every_command(void **state)
{
	static const char *const names[] = { "open", "read", "seek", "close" };

	for (size_t without = 0; without <= 4; without++) {
		char reply[400] = "{\"return\":{\"supported_commands\":[";
		struct agent_info info;

		for (size_t i = 0; i < 4; i++) {
			size_t used = strlen(reply);

			(void)snprintf(reply + used, sizeof(reply) - used,
				       "%s{\"name\":\"guest-file-%s\",\"enabled\":%s}",
				       i ? "," : "", names[i], i == without ? "false" : "true");
		}
		(void)strcat(reply, "]}}");
		assert_int_equal(agent_info_read(reply, &info, NULL), 0);
		assert_int_equal(info.can_read_files, without == 4);
	}
}

static void a_long_version_is_cut(void **state)
{
	char reply[300];
	struct agent_info info;

	(void)snprintf(reply, sizeof(reply),
		       "{\"return\":{\"supported_commands\":[],\"version\":\"%0200d\"}}", 0);
	assert_int_equal(agent_info_read(reply, &info, NULL), 0);
	assert_int_equal(strlen(info.version), sizeof(info.version) - 1);
	assert_false(info.can_read_files);
}

static void replies_without_sense_are_refused(void **state)
{
	static const char *const replies[] = {
		"",
		"{",
		"[]",
		"7",
		"{\"return\":null}",
		"{\"return\":[]}",
		"{\"return\":{\"supported_commands\":{}}}",
		"{\"error\":{\"class\":\"x\"}}",
		"{\"return\":{\"buf-b64\":7}}",
	};
	struct ptvm_error error = { 0 };
	struct agent_info info;
	int64_t handle;
	char text[8];

	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		assert_int_equal(agent_info_read(replies[i], &info, &error), -PTVM_BAD_INPUT);
		assert_int_equal(agent_handle_read(replies[i], &handle, NULL), -PTVM_BAD_INPUT);
		assert_int_equal(agent_data_read(replies[i], text, sizeof(text), NULL),
				 -PTVM_BAD_INPUT);
	}
	assert_string_equal(error.message, "the guest agent's reply makes no sense");
}

static void entries_of_any_type_are_stepped_over(void **state)
{
	static const char reply[] = "{\"return\":{\"version\":1,\"supported_commands\":"
				    "[1,null,[],{\"name\":2},{\"enabled\":true}]}}";
	struct agent_info info;

	assert_int_equal(agent_info_read(reply, &info, NULL), 0);
	assert_string_equal(info.version, "?");
	assert_false(info.can_read_files || info.can_run);
}

static void a_handle_is_a_number(void **state)
{
	int64_t handle;

	assert_int_equal(agent_handle_read("{\"return\":1000}", &handle, NULL), 0);
	assert_int_equal(handle, 1000);
}

static void a_process_has_a_number(void **state)
{
	int64_t process;

	assert_int_equal(agent_process_read("{\"return\":{\"pid\":77}}", &process, NULL), 0);
	assert_int_equal(process, 77);
	assert_int_equal(agent_process_read("{\"return\":77}", &process, NULL), -PTVM_BAD_INPUT);
}

static void a_process_ends_with_a_status_and_output(void **state)
{
	struct agent_output output;
	char text[2];

	assert_int_equal(
		agent_output_read("{\"return\":{\"exited\":false}}", text, 2, &output, NULL), 0);
	assert_false(output.has_ended);
	assert_int_equal(agent_output_read("{\"return\":{\"exited\":true,\"exitcode\":3,"
					   "\"out-data\":\"YWJj\"}}",
					   text, 2, &output, NULL),
			 0);
	assert_true(output.has_ended);
	assert_int_equal(output.status, 3);
	assert_int_equal(output.size, 2);
	assert_memory_equal(text, "ab", 2);
	/* ended by a signal */
	assert_int_equal(agent_output_read("{\"return\":{\"exited\":true,\"signal\":9}}", text, 2,
					   &output, NULL),
			 0);
	assert_int_equal(output.status, -1);
	assert_int_equal(agent_output_read("{\"return\":{}}", text, 2, &output, NULL),
			 -PTVM_BAD_INPUT);
}

static void assert_bytes(const char *base64, size_t size, const char *expected)
{
	char reply[100], text[16];
	int count;

	(void)snprintf(reply, sizeof(reply), "{\"return\":{\"buf-b64\":\"%s\"}}", base64);
	count = agent_data_read(reply, text, size, NULL);
	assert_int_equal(count, strlen(expected));
	assert_memory_equal(text, expected, strlen(expected));
}

static void bytes_are_base64(void **state)
{
	assert_bytes("", 16, "");
	assert_bytes("MQo=", 16, "1\n");
	assert_bytes("YQ==", 16, "a");
	assert_bytes("YWJj", 16, "abc");
	assert_bytes("YWJjZA", 16, "abcd");
	assert_bytes("YWJj*ZA", 16, "abc");
	assert_bytes("YWJjZGVm", 3, "abc");
	assert_bytes("YWJjZGVm", 6, "abcdef");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_count_where_they_are_enabled),
		cmocka_unit_test(files_need_every_command),
		cmocka_unit_test(a_long_version_is_cut),
		cmocka_unit_test(replies_without_sense_are_refused),
		cmocka_unit_test(entries_of_any_type_are_stepped_over),
		cmocka_unit_test(a_handle_is_a_number),
		cmocka_unit_test(a_process_has_a_number),
		cmocka_unit_test(a_process_ends_with_a_status_and_output),
		cmocka_unit_test(bytes_are_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
