#include "guest/agent_reply.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/cleanup.h"

static void json_release(json_t **json)
{
	json_decref(*json);
}

#define _cleanup_json_ _cleanup_(json_release)

/* A reply is {"return": ...}. */
static json_t *load(const char *reply)
{
	return json_loads(reply, JSON_REJECT_DUPLICATES, NULL);
}

static int fail(struct ptvm_error *error)
{
	return ptvm_fail(error, PTVM_BAD_INPUT, "the guest agent's reply makes no sense");
}

static bool allows(json_t *commands, const char *name)
{
	const char *its_name;
	json_t *command;
	size_t i;

	json_array_foreach(commands, i, command)
	{
		its_name = json_string_value(json_object_get(command, "name"));
		if (its_name && !strcmp(its_name, name))
			return json_is_true(json_object_get(command, "enabled"));
	}
	return false;
}

int agent_info_read(const char *reply, struct agent_info *ret, struct ptvm_error *error)
{
	_cleanup_json_ json_t *json = load(reply);
	json_t *info = json_object_get(json, "return");
	json_t *commands = json_object_get(info, "supported_commands");
	const char *version = json_string_value(json_object_get(info, "version"));

	memset(ret, 0, sizeof(*ret));
	if (!json_is_array(commands))
		return fail(error);
	(void)snprintf(ret->version, sizeof(ret->version), "%s", version ? version : "?");
	ret->can_read_files =
		allows(commands, "guest-file-open") && allows(commands, "guest-file-read") &&
		allows(commands, "guest-file-seek") && allows(commands, "guest-file-close");
	ret->can_run = allows(commands, "guest-exec") && allows(commands, "guest-exec-status");
	return 0;
}

int agent_handle_read(const char *reply, int64_t *ret, struct ptvm_error *error)
{
	_cleanup_json_ json_t *json = load(reply);
	json_t *handle = json_object_get(json, "return");

	*ret = json_integer_value(handle);
	return json_is_integer(handle) ? 0 : fail(error);
}

/* The value of each letter of base64, plus one; 0: no letter of it. */
static const uint8_t base64_digits[256] = {
	['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,
	['H'] = 8,  ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14,
	['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21,
	['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28,
	['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35,
	['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49,
	['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
	['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63,
	['/'] = 64,
};

/* Decode until the padding or the end of `from`; what is no base64 ends it, too. */
static size_t base64_decode(const char *from, uint8_t *data, size_t size)
{
	unsigned bits = 0, count = 0, digit;
	size_t used = 0;

	for (; (digit = base64_digits[(uint8_t)*from]) && used < size; from++) {
		bits = (bits << 6 | (digit - 1)) & 0xffff;
		count += 6;
		if (count >= 8) {
			count -= 8;
			data[used++] = (uint8_t)(bits >> count);
		}
	}
	return used;
}

int agent_data_read(const char *reply, void *data, size_t size, struct ptvm_error *error)
{
	_cleanup_json_ json_t *json = load(reply);
	const char *base64 =
		json_string_value(json_object_get(json_object_get(json, "return"), "buf-b64"));

	return base64 ? (int)base64_decode(base64, data, size) : fail(error);
}

int agent_position_read(const char *reply, int64_t *ret, struct ptvm_error *error)
{
	_cleanup_json_ json_t *json = load(reply);
	json_t *position = json_object_get(json_object_get(json, "return"), "position");

	*ret = json_integer_value(position);
	return json_is_integer(position) ? 0 : fail(error);
}

int agent_process_read(const char *reply, int64_t *ret, struct ptvm_error *error)
{
	_cleanup_json_ json_t *json = load(reply);
	json_t *process = json_object_get(json_object_get(json, "return"), "pid");

	*ret = json_integer_value(process);
	return json_is_integer(process) ? 0 : fail(error);
}

/* Without a status it was ended by a signal. */
int agent_output_read(const char *reply, void *data, size_t size, struct agent_output *ret,
		      struct ptvm_error *error)
{
	_cleanup_json_ json_t *json = load(reply);
	json_t *process = json_object_get(json, "return");
	json_t *has_ended = json_object_get(process, "exited");
	json_t *status = json_object_get(process, "exitcode");
	const char *base64 = json_string_value(json_object_get(process, "out-data"));

	*ret = (struct agent_output){
		.has_ended = json_is_true(has_ended),
		.status = json_is_integer(status) ? json_integer_value(status) : -1,
		.size = base64 ? base64_decode(base64, data, size) : 0,
	};
	return json_is_boolean(has_ended) ? 0 : fail(error);
}
