#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/record/pt_event.h"

/* A CPU of Skylake's kind. */
static const struct pt_pmu pmu = {
	.type = 8,
	.caps = { [PT_CAP_PSB_CYC] = 1,
		  [PT_CAP_MTC] = 1,
		  [PT_CAP_MTC_PERIODS] = 0x249,
		  [PT_CAP_CYCLE_THRESHOLDS] = 0x3fff,
		  [PT_CAP_PSB_PERIODS] = 0x3f },
	.terms = { { "pt", 0, 0 },
		   { "cyc", 1, 1 },
		   { "pwr_evt", 4, 4 },
		   { "mtc", 9, 9 },
		   { "tsc", 10, 10 },
		   { "noretcomp", 11, 11 },
		   { "ptw", 12, 12 },
		   { "branch", 13, 13 },
		   { "mtc_period", 14, 17 },
		   { "cyc_thresh", 19, 22 },
		   { "psb_period", 24, 27 } },
	.term_count = 11,
};

enum { DEFAULT = 1 | 1 << 9 | 1 << 10 | 1 << 13 | 3 << 14 | 3 << 24 };

static void assert_config(const char *text, uint64_t config)
{
	struct ptvm_error error = { 0 };
	struct pt_event event;

	assert_int_equal(pt_event_parse(&pmu, text, false, &event, &error), 0);
	assert_int_equal(event.config, config);
}

static void what_is_not_named_is_as_in_perf(void **state)
{
	assert_config("intel_pt", DEFAULT);
	assert_config("intel_pt//", DEFAULT);
	assert_config("intel_pt//k", DEFAULT);
	assert_config("intel_pt/,/", DEFAULT);
}

static void samples_have_psbs_as_often_as_can_be(void **state)
{
	struct pt_event event;

	assert_int_equal(pt_event_parse(&pmu, "intel_pt//", true, &event, NULL), 0);
	assert_int_equal(event.config, DEFAULT & ~(15 << 24));
	assert_int_equal(pt_event_parse(&pmu, "intel_pt/psb_period=3/", true, &event, NULL), 0);
	assert_int_equal(event.config, DEFAULT);
}

static void terms_are_set_and_cleared(void **state)
{
	assert_config("intel_pt/cyc/", DEFAULT | 2);
	assert_config("intel_pt/cyc=1,noretcomp/u", DEFAULT | 2 | 1 << 11);
	assert_config("intel_pt/tsc=0,mtc=0/", DEFAULT & ~(1 << 9 | 1 << 10));
	assert_config("intel_pt/mtc_period=9/", (DEFAULT & ~(15 << 14)) | 9 << 14);
	assert_config("intel_pt/mtc_period=0x6,mtc_period=0/", DEFAULT & ~(15 << 14));
	assert_config("intel_pt/psb_period=5,cyc_thresh=13/",
		      (DEFAULT & ~(15 << 24)) | 5 << 24 | 13 << 19);
}

static void assert_modifiers(const char *text, bool no_user, bool no_kernel)
{
	struct pt_event event;

	assert_int_equal(pt_event_parse(&pmu, text, false, &event, NULL), 0);
	assert_int_equal(event.no_user, no_user);
	assert_int_equal(event.no_kernel, no_kernel);
}

static void modifiers_restrict_the_trace(void **state)
{
	assert_modifiers("intel_pt//", false, false);
	assert_modifiers("intel_pt//u", false, true);
	assert_modifiers("intel_pt/cyc/k", true, false);
	assert_modifiers("intel_pt//uk", false, false);
	assert_modifiers("intel_pt:k", true, false);
}

static void assert_refused(const char *text, const char *message)
{
	struct ptvm_error error = { 0 };
	struct pt_event event;

	assert_int_equal(pt_event_parse(&pmu, text, false, &event, &error), -PTVM_BAD_USAGE);
	assert_string_equal(error.message, message);
}

static void assert_others_refused(const char *text)
{
	char message[300];

	(void)snprintf(message, sizeof(message),
		       "-e takes the event intel_pt alone, no group and no others: '%s'; "
		       "--kvm-events records KVM's tracepoints, --aux-sample samples the trace at "
		       "exits of guests or by time",
		       text);
	assert_refused(text, message);
}

static void mistakes_get_what_is_legal(void **state)
{
	assert_others_refused("cycles");
	assert_others_refused("");
	assert_others_refused("intel_ptx");
	assert_others_refused("intel_pt//,cycles");
	assert_others_refused("intel_pt//k,cycles:u");
	assert_others_refused("intel_pt:u,cycles");
	assert_others_refused("{intel_pt//,cycles}");
	assert_others_refused("{intel_pt//k,kvm:kvm_exit}:u");
	assert_refused("intel_pt/cyc", "no second slash: 'intel_pt/cyc'");
	assert_refused("intel_pt//G", "after intel_pt// stand u and k, not 'G'");
	assert_refused("intel_pt/cy/", "intel_pt has no option 'cy'; it has pt, cyc, pwr_evt, mtc, "
				       "tsc, noretcomp, ptw, branch, mtc_period, cyc_thresh, "
				       "psb_period");
	assert_refused("intel_pt/cyc=/", "no number: 'cyc='");
	assert_refused("intel_pt/cyc=1x/", "no number: 'cyc=1x'");
	assert_refused("intel_pt/cyc=-1/", "no number: 'cyc=-1'");
	assert_refused("intel_pt/psb_period=99999999999999999999/",
		       "no number: 'psb_period=99999999999999999999'");
}

static void values_that_the_cpu_lacks_are_refused(void **state)
{
	assert_refused("intel_pt/cyc=2/", "cyc of intel_pt can be 1 at most");
	for (int i = 0; i < 3; i++)
		assert_refused((const char *const[]){ "intel_pt/mtc_period=4/",
						      "intel_pt/mtc_period=16/",
						      "intel_pt/mtc_period=99/" }[i],
			       "mtc_period of intel_pt can be 0, 3, 6, 9 on this CPU");
	assert_refused("intel_pt/psb_period=6/",
		       "psb_period of intel_pt can be 0, 1, 2, 3, 4, 5 on this CPU");
	assert_refused("intel_pt/ptw/", "this CPU has no ptw");
	assert_config("intel_pt/ptw=0/", DEFAULT);
}

static void a_plain_cpu_gets_plain_defaults(void **state)
{
	struct pt_pmu plain = pmu;
	struct pt_event event;

	memset(plain.caps, 0, sizeof(plain.caps));
	assert_int_equal(pt_event_parse(&plain, "intel_pt//", false, &event, NULL), 0);
	assert_int_equal(event.config, 1 | 1 << 10 | 1 << 13);
	plain.caps[PT_CAP_MTC] = 1;
	plain.caps[PT_CAP_MTC_PERIODS] = 1 << 9;
	assert_int_equal(pt_event_parse(&plain, "intel_pt//", false, &event, NULL), 0);
	assert_int_equal(event.config, 1 | 1 << 10 | 1 << 13 | 1 << 9 | 9 << 14);
	plain.caps[PT_CAP_MTC_PERIODS] = 1 << 2 | 1 << 4;
	assert_int_equal(pt_event_parse(&plain, "intel_pt//", false, &event, NULL), 0);
	assert_int_equal(event.config, 1 | 1 << 10 | 1 << 13 | 1 << 9 | 2 << 14);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_named_is_as_in_perf),
		cmocka_unit_test(samples_have_psbs_as_often_as_can_be),
		cmocka_unit_test(terms_are_set_and_cleared),
		cmocka_unit_test(modifiers_restrict_the_trace),
		cmocka_unit_test(mistakes_get_what_is_legal),
		cmocka_unit_test(values_that_the_cpu_lacks_are_refused),
		cmocka_unit_test(a_plain_cpu_gets_plain_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
