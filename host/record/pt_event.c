#include "host/record/pt_event.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_PERIOD = 3 };

/* Terms that a CPU may lack, or of which it allows only some values. */
static const struct {
	const char *name;
	enum pt_cap cap;
	bool is_mask; /* bit n of the capability: n is legal */
} limits[] = {
	{ "cyc", PT_CAP_PSB_CYC, false },       { "cyc_thresh", PT_CAP_CYCLE_THRESHOLDS, true },
	{ "event", PT_CAP_EVENT_TRACE, false }, { "fup_on_ptw", PT_CAP_PTWRITE, false },
	{ "mtc", PT_CAP_MTC, false },           { "mtc_period", PT_CAP_MTC_PERIODS, true },
	{ "notnt", PT_CAP_TNT_DISABLE, false }, { "psb_period", PT_CAP_PSB_PERIODS, true },
	{ "ptw", PT_CAP_PTWRITE, false },       { "pwr_evt", PT_CAP_POWER_EVENT_TRACE, false },
};

/* A text of limited length under construction. */
struct list {
	char text[300];
	size_t used;
};

static void list_add(struct list *list, const char *word)
{
	int length;

	if (list->used >= sizeof(list->text))
		return;
	length = snprintf(list->text + list->used, sizeof(list->text) - list->used, "%s%s",
			  list->used ? ", " : "", word);
	list->used += (size_t)length;
}

static int unknown_term(const struct pt_pmu *pmu, const char *name, size_t length,
			struct ptvm_error *error)
{
	struct list list = { .text = "" };

	for (size_t i = 0; i < pmu->term_count; i++)
		list_add(&list, pmu->terms[i].name);
	return ptvm_fail(error, PTVM_BAD_USAGE, "intel_pt has no option '%.*s'; it has %s",
			 (int)length, name, list.text);
}

static void set_term(struct pt_event *event, const struct pt_term *term, uint64_t value)
{
	event->config &= ~(pt_term_most(term) << term->low);
	event->config |= value << term->low;
}

/* The highest legal period up to the usual one, else the lowest. */
static uint64_t pick_period(uint32_t mask)
{
	uint64_t period = 0;

	for (unsigned i = 0; i < 32; i++)
		if (mask >> i & 1 && (i <= USUAL_PERIOD || !(mask & ((1U << i) - 1))))
			period = i;
	return period;
}

static void set_default(const struct pt_pmu *pmu, struct pt_event *event, const char *name,
			uint64_t value)
{
	const struct pt_term *term = pt_pmu_term(pmu, name, strlen(name));

	if (term && value <= pt_term_most(term))
		set_term(event, term, value);
}

static void set_defaults(const struct pt_pmu *pmu, bool is_sampled, struct pt_event *event)
{
	set_default(pmu, event, "pt", 1);
	set_default(pmu, event, "branch", 1);
	set_default(pmu, event, "tsc", 1);
	if (pmu->caps[PT_CAP_MTC]) {
		set_default(pmu, event, "mtc", 1);
		set_default(pmu, event, "mtc_period", pick_period(pmu->caps[PT_CAP_MTC_PERIODS]));
	}
	if (pmu->caps[PT_CAP_PSB_CYC] && !is_sampled)
		set_default(pmu, event, "psb_period", pick_period(pmu->caps[PT_CAP_PSB_PERIODS]));
}

static int illegal_value(const char *name, uint32_t mask, struct ptvm_error *error)
{
	struct list list = { .text = "" };
	char number[4];

	for (unsigned i = 0; i < 32; i++) {
		(void)snprintf(number, sizeof(number), "%u", i);
		if (mask >> i & 1)
			list_add(&list, number);
	}
	return ptvm_fail(error, PTVM_BAD_USAGE, "%s of intel_pt can be %s on this CPU", name,
			 list.text);
}

/* Zero, which is off or the least, is always legal. */
static int check_limits(const struct pt_pmu *pmu, const struct pt_term *term, uint64_t value,
			struct ptvm_error *error)
{
	uint32_t cap;

	for (size_t i = 0; value && i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (strcmp(limits[i].name, term->name))
			continue;
		cap = pmu->caps[limits[i].cap];
		if (limits[i].is_mask && (value > 31 || !(cap >> value & 1)))
			return illegal_value(term->name, cap | 1, error);
		if (!limits[i].is_mask && !cap)
			return ptvm_fail(error, PTVM_BAD_USAGE, "this CPU has no %s", term->name);
	}
	if (value > pt_term_most(term))
		return ptvm_fail(error, PTVM_BAD_USAGE, "%s of intel_pt can be %llu at most",
				 term->name, (unsigned long long)pt_term_most(term));
	return 0;
}

/* One term: NAME or NAME=VALUE, `length` bytes. */
static int parse_term(const struct pt_pmu *pmu, const char *text, size_t length,
		      struct pt_event *event, struct ptvm_error *error)
{
	const char *equals = memchr(text, '=', length);
	size_t name_length = equals ? (size_t)(equals - text) : length;
	const struct pt_term *term = pt_pmu_term(pmu, text, name_length);
	uint64_t value = 1;
	char *end = NULL;
	int r;

	if (!term)
		return unknown_term(pmu, text, name_length, error);
	if (equals) {
		errno = 0;
		value = strtoull(equals + 1, &end, 0);
		if (!isdigit((unsigned char)equals[1]) || end != text + length || errno)
			return ptvm_fail(error, PTVM_BAD_USAGE, "no number: '%.*s'", (int)length,
					 text);
	}
	r = check_limits(pmu, term, value, error);
	if (!r)
		set_term(event, term, value);
	return r;
}

static int parse_terms(const struct pt_pmu *pmu, const char *text, size_t length,
		       struct pt_event *event, struct ptvm_error *error)
{
	const char *end = text + length;
	size_t size;
	int r;

	for (; text < end; text += size + 1) {
		size = strcspn(text, ",/");
		r = size ? parse_term(pmu, text, size, event, error) : 0;
		if (r)
			return r;
	}
	return 0;
}

static int parse_modifiers(const char *text, struct pt_event *event, struct ptvm_error *error)
{
	bool user = !*text, kernel = !*text;

	for (const char *letter = text; *letter; letter++) {
		user |= *letter == 'u';
		kernel |= *letter == 'k';
		if (!strchr("uk", *letter))
			return ptvm_fail(error, PTVM_BAD_USAGE,
					 "after intel_pt// stand u and k, not '%s'", text);
	}
	event->no_user = !user;
	event->no_kernel = !kernel;
	return 0;
}

/* perf takes several events; those in a group with intel_pt are what its trace is sampled by. */
static int refuse_others(const char *text, struct ptvm_error *error)
{
	return ptvm_fail(
		error, PTVM_BAD_USAGE,
		"-e takes the event intel_pt alone, no group and no others: '%s'; "
		"--kvm-events records KVM's tracepoints, --aux-sample samples the trace at "
		"exits of guests or by time",
		text);
}

int pt_event_parse(const struct pt_pmu *pmu, const char *text, bool is_sampled,
		   struct pt_event *ret, struct ptvm_error *error)
{
	static const char name[] = "intel_pt";
	const char *rest = text + sizeof(name) - 1, *slash;
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	set_defaults(pmu, is_sampled, ret);
	if (strncmp(text, name, sizeof(name) - 1) || (*rest && !strchr("/:", *rest)))
		return refuse_others(text, error);
	if (*rest == '/') {
		slash = strchr(rest + 1, '/');
		if (!slash)
			return ptvm_fail(error, PTVM_BAD_USAGE, "no second slash: '%s'", text);
		r = parse_terms(pmu, rest + 1, (size_t)(slash - rest - 1), ret, error);
		rest = slash;
	}
	if (*rest)
		rest++;
	if (!r && strchr(rest, ','))
		return refuse_others(text, error);
	return r ? r : parse_modifiers(rest, ret, error);
}
