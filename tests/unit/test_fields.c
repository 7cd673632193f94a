#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/fields.h"

enum { BEFORE = FIELD_COMM | FIELD_IP };

static uint32_t parse(const char *text)
{
	uint32_t fields = BEFORE;
	struct ptvm_error error = { 0 };

	if (fields_parse(text, EVENT_OF_TRACE, &fields, &error))
		fail_msg("%s: %s", text, error.message);
	return fields;
}

#define FIELDS                                                                                     \
	": there are comm tid pid cpu time event period ip sym symoff dso addr flags insn "        \
	"insnlen "                                                                                 \
	"ipc machine_pid vcpu synth vmcs nr callindent disasm trace brstack"
#define KINDS ": there are hw sw trace raw break synth"

static void refuse(const char *text, const char *message)
{
	uint32_t fields = BEFORE;
	struct ptvm_error error = { 0 };

	if (fields_parse(text, EVENT_OF_TRACE, &fields, &error) != -PTVM_BAD_USAGE)
		fail_msg("%s was accepted", text);
	assert_int_equal(fields, BEFORE);
	assert_string_equal(error.message, message);
}

static void every_field_has_its_name(void **state)
{
	assert_int_equal(parse("comm,tid,pid,cpu,time,event,period,ip,sym,symoff,dso,addr,flags,"
			       "insn,insnlen,ipc,machine_pid,vcpu,synth,vmcs,nr,callindent,disasm,"
			       "trace,brstack"),
			 (FIELD_BRSTACK << 1) - 1);
}

static void words_are_the_names_of_all(void **state)
{
	char list[512];

	assert_true(sizeof(list) > strlen(fields_words));
	strcpy(list, fields_words);
	for (char *blank = list; (blank = strchr(blank, ' '));)
		*blank = ',';
	assert_int_equal(parse(list), (FIELD_BRSTACK << 1) - 1);
}

static void a_list_replaces_the_fields(void **state)
{
	assert_int_equal(parse("sym"), FIELD_SYM);
	assert_int_equal(parse("insn,ip,insn"), FIELD_INSN | FIELD_IP);
	assert_int_equal(parse(",sym,,dso,"), FIELD_SYM | FIELD_DSO);
}

static void signs_change_the_fields(void **state)
{
	assert_int_equal(parse("+insn"), BEFORE | FIELD_INSN);
	assert_int_equal(parse("-ip"), FIELD_COMM);
	assert_int_equal(parse("+insn,-comm,+vcpu,-dso"), FIELD_IP | FIELD_INSN | FIELD_VCPU);
	assert_int_equal(parse("+sym,-sym"), BEFORE);
}

static void a_list_does_not_mix_with_signs(void **state)
{
	refuse("+insn,ip", "-F: 'ip' mixes a list of fields with + and -");
	refuse("ip,-sym", "-F: '-sym' mixes a list of fields with + and -");
}

static void words_that_are_no_field_are_refused(void **state)
{
	refuse("ip,foo,sym", "-F: no field is called 'foo'" FIELDS);
	refuse("+brstacksym", "-F: perf's field 'brstacksym' is not here" FIELDS);
	refuse("COMM", "-F: no field is called 'COMM'" FIELDS);
	refuse("comm tid", "-F: no field is called 'comm tid'" FIELDS);
	refuse("sy", "-F: no field is called 'sy', did you mean 'sym'?");
	refuse("data_src", "-F: perf's field 'data_src' is not here" FIELDS);
	refuse("+srcline", "-F: perf's field 'srcline' is not here" FIELDS);
	refuse("-", "-F: no field is called ''" FIELDS);
	refuse("++ip", "-F: no field is called '+ip', did you mean 'ip'?");
}

static void a_list_without_fields_is_refused(void **state)
{
	refuse("", "-F: the list has no field");
	refuse(",,", "-F: the list has no field");
	refuse("hw:", "-F: the list has no field");
}

static void kinds_of_events_in_the_trace_count(void **state)
{
	assert_int_equal(parse("hw:sym"), FIELD_SYM);
	assert_int_equal(parse("synth:+sym"), BEFORE | FIELD_SYM);
}

static void kinds_of_events_outside_the_trace_change_nothing(void **state)
{
	assert_int_equal(parse("sw:sym"), BEFORE);
	assert_int_equal(parse("trace:+sym"), BEFORE);
	assert_int_equal(parse("raw:sym"), BEFORE);
	assert_int_equal(parse("break:-ip"), BEFORE);
	refuse("sw:foo", "-F: no field is called 'foo'" FIELDS);
}

static uint32_t parse_for(enum event_kind kind, const char *text)
{
	uint32_t fields = BEFORE;
	struct ptvm_error error = { 0 };

	if (fields_parse(text, kind, &fields, &error))
		fail_msg("%s: %s", text, error.message);
	return fields;
}

static void a_list_is_for_all_kinds_or_its_own(void **state)
{
	assert_int_equal(parse_for(EVENT_SOFTWARE, "sym"), FIELD_SYM);
	assert_int_equal(parse_for(EVENT_SOFTWARE, "sw:sym"), FIELD_SYM);
	assert_int_equal(parse_for(EVENT_SOFTWARE, "trace:sym"), BEFORE);
	assert_int_equal(parse_for(EVENT_TRACEPOINT, "trace:+sym"), BEFORE | FIELD_SYM);
	assert_int_equal(parse_for(EVENT_HARDWARE, "hw:sym"), FIELD_SYM);
	assert_int_equal(parse_for(EVENT_HARDWARE, "synth:sym"), BEFORE);
	assert_int_equal(parse_for(EVENT_OTHER, "hw:sym"), BEFORE);
}

static void an_empty_list_leaves_samples_out(void **state)
{
	assert_int_equal(parse_for(EVENT_SOFTWARE, "sw:"), 0);
	assert_int_equal(parse_for(EVENT_TRACEPOINT, "sw:"), BEFORE);
	assert_int_equal(parse("trace:"), BEFORE);
}

static void other_kinds_are_refused(void **state)
{
	refuse("xx:ip", "-F: no kind of events is called 'xx'" KINDS);
	refuse(":ip", "-F: no kind of events is called ''" KINDS);
	refuse("hw:sw:ip", "-F: no field is called 'sw:ip'" FIELDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_has_its_name),
		cmocka_unit_test(words_are_the_names_of_all),
		cmocka_unit_test(a_list_replaces_the_fields),
		cmocka_unit_test(signs_change_the_fields),
		cmocka_unit_test(a_list_does_not_mix_with_signs),
		cmocka_unit_test(words_that_are_no_field_are_refused),
		cmocka_unit_test(a_list_without_fields_is_refused),
		cmocka_unit_test(kinds_of_events_in_the_trace_count),
		cmocka_unit_test(a_list_is_for_all_kinds_or_its_own),
		cmocka_unit_test(an_empty_list_leaves_samples_out),
		cmocka_unit_test(kinds_of_events_outside_the_trace_change_nothing),
		cmocka_unit_test(other_kinds_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
