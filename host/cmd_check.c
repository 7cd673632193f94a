#include "host/cmd_check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "decode/base/options.h"
#include "decode/base/plural.h"
#include "host/check_guest.h"
#include "host/check_host.h"
#include "host/vm/guest_way.h"

struct check_args {
	struct check_guest guest;
	bool json;
};

static int parse_options(struct check_args *args, int argc, char **argv, struct ptvm_error *error)
{
	const struct option_row rows[] = {
		{ 0, "domain", OPT_STRING, &args->guest.name, "NAME",
		  "look at this guest, too: a libvirt domain by name, UUID or id, or a QEMU's "
		  "-name" },
		{ 'p', "pid", OPT_CALL, &args->guest.pid, "PID",
		  "look at the guest that process PID runs", .call = guest_way_read_pid },
		{ 'c', "connect", OPT_STRING, &args->guest.uri, "URI",
		  "libvirt to talk to (default: $LIBVIRT_DEFAULT_URI, then qemu:///system)" },
		{ 0, "json", OPT_FLAG, &args->json, NULL, "print JSON" },
		{ 0 },
	};
	const struct options options = {
		.usage = "ptvm check [OPTION]...",
		.summary =
			"Say whether this host can trace its guests, item by item, and what to do "
			"if not.",
		.rows = rows,
	};
	int r = options_parse(&options, argc, argv, stdout, error);

	return r ? r : guest_way_check_name(args->guest.name, args->guest.pid, error);
}

static void print_text(const struct check_list *list)
{
	const size_t blocks = check_count(list, CHECK_BLOCKS);
	const size_t warnings = check_count(list, CHECK_WARNING);
	const struct check_item *item;

	for (item = list->items; item < list->items + list->count; item++) {
		(void)printf("%-8s %-20s %s", check_verdict_text(item->verdict), item->name,
			     item->value);
		if (item->remedy)
			(void)printf(" -> %s", item->remedy);
		(void)putchar('\n');
	}
	if (blocks)
		(void)printf("Recording cannot work: %zu of %zu items block%s it.\n", blocks,
			     list->count, blocks == 1 ? "s" : "");
	else
		(void)printf("Recording can work, with %zu warning%s.\n", warnings,
			     plural(warnings));
}

static json_t *item_json(const struct check_item *item)
{
	return json_pack("{s:s, s:s, s:s, s:s?}", "item", item->name, "verdict",
			 check_verdict_text(item->verdict), "value", item->value, "remedy",
			 item->remedy);
}

static int print_json(const struct check_list *list)
{
	json_t *items = json_array();
	json_t *json = json_pack("{s:b, s:o}", "can_record", !check_count(list, CHECK_BLOCKS),
				 "items", items);
	int r = json ? 0 : -PTVM_NO_MEMORY;

	for (size_t i = 0; i < list->count && !r; i++)
		if (json_array_append_new(items, item_json(&list->items[i])))
			r = -PTVM_NO_MEMORY;
	if (!r)
		r = json_dumpf(json, stdout, JSON_INDENT(2)) ? -PTVM_NO_MEMORY : 0;
	if (!r)
		(void)putchar('\n');
	json_decref(json);
	return r;
}

int cmd_check(int argc, char **argv, struct ptvm_error *error)
{
	const struct roots roots = roots_here();
	struct check_args args = { 0 };
	struct check_list list = { 0 };
	int r;

	r = parse_options(&args, argc, argv, error);
	if (r)
		return r;
	check_host(&roots, ".", &list);
	check_libvirt(args.guest.uri, &list);
	if (args.guest.name || args.guest.pid)
		check_guest(&roots, &args.guest, &list);
	if (args.json)
		r = print_json(&list);
	else
		print_text(&list);
	return r ? r : check_count(&list, CHECK_BLOCKS) != 0;
}
