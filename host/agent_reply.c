#include "host/agent_reply.h"

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

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decode until the padding or the end of `text`; what is no base64 ends it, too. */
static size_t base64_decode(const char *from, char *text, size_t size)
{
	unsigned bits = 0, count = 0;
	size_t used = 0;
	int digit;

	for (; (digit = base64_digit(*from)) >= 0 && used < size - 1; from++) {
		bits = (bits << 6 | (unsigned)digit) & 0xffff;
		count += 6;
		if (count >= 8) {
			count -= 8;
			text[used++] = (char)(bits >> count & 0xff);
		}
	}
	text[used] = 0;
	return used;
}

int agent_bytes_read(const char *reply, char *text, size_t size, struct ptvm_error *error)
{
	_cleanup_json_ json_t *json = load(reply);
	const char *base64 =
		json_string_value(json_object_get(json_object_get(json, "return"), "buf-b64"));

	text[0] = 0;
	return base64 ? (int)base64_decode(base64, text, size) : fail(error);
}
