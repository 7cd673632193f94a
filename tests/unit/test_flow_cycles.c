#include "decode/flow/flow_cycles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Three cycles take two ticks. */
static const struct pt_config config = { .tsc = true, .mtc = true, .max_nonturbo = 20 };

static struct pt_flow flow_at(uint64_t now)
{
	return (struct pt_flow){ .config = &config,
				 .state = FLOW_RUNNING,
				 .clock = { .now = now, .cbr = 30 } };
}

static void assert_count(struct pt_flow *flow, uint64_t now, uint64_t cycles)
{
	flow->clock.now = now;
	flow_cycles_count(flow);
	assert_int_equal(flow->cycles, cycles);
}

static void cycles_go_by_time_and_frequency(void **state)
{
	struct pt_flow flow = flow_at(1000);

	flow_cycles_begin(&flow);
	assert_count(&flow, 1000, 0);
	assert_count(&flow, 1001, 1);
	assert_count(&flow, 1002, 3);
	assert_count(&flow, 3000, 3000);
	flow_cycles_begin(&flow);
	flow.clock.cbr = 10;
	assert_count(&flow, 3001, 3000);
	assert_count(&flow, 3002, 3001);
}

static void nothing_is_counted_before_there_is_a_time(void **state)
{
	struct pt_flow flow = flow_at(0);

	assert_count(&flow, 1000, 0);
	assert_count(&flow, 1010, 15);
}

static void the_time_when_tracing_is_off_is_left_out(void **state)
{
	struct pt_flow flow = flow_at(1000);

	flow_cycles_begin(&flow);
	flow.state = FLOW_DISABLED;
	assert_count(&flow, 2000, 0);
	flow_cycles_begin(&flow);
	flow.state = FLOW_RUNNING;
	assert_count(&flow, 2010, 15);
}

static void cyc_packets_count_better(void **state)
{
	struct pt_config with_cyc = config, without_ratio = config;
	struct pt_flow flow = flow_at(1000);

	with_cyc.cyc = true;
	flow.config = &with_cyc;
	flow_cycles_begin(&flow);
	assert_count(&flow, 2000, 0);
	without_ratio.max_nonturbo = 0;
	flow.config = &without_ratio;
	assert_count(&flow, 3000, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cycles_go_by_time_and_frequency),
		cmocka_unit_test(nothing_is_counted_before_there_is_a_time),
		cmocka_unit_test(the_time_when_tracing_is_off_is_left_out),
		cmocka_unit_test(cyc_packets_count_better),
	};

	return cmocka_run_group_tests_name("flow_cycles", tests, NULL, NULL);
}
