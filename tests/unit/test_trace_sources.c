#include "decode/flow/trace_sources.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_queue_is_kept_with_where_its_code_is(void **state)
{
	const struct aux_queue queues[] = { { .size = 1 }, { .size = 2 } };
	struct trace_sources sources = { 0 };

	for (int i = 0; i < 2; i++)
		assert_int_equal(
			trace_sources_add(&sources, &queues[i], &(struct flow_code){ .pid = i }),
			0);
	assert_int_equal(sources.count, 2);
	assert_ptr_equal(sources.items[1].queue, &queues[1]);
	assert_int_equal(sources.items[1].where.pid, 1);
	trace_sources_free(&sources);
	assert_int_equal(sources.count, 0);
}

static void the_size_is_that_of_all_queues(void **state)
{
	const struct aux_queue queues[] = { { .size = UINT32_MAX }, { .size = 2 } };
	struct trace_sources sources = { 0 };

	assert_int_equal(trace_sources_size(&sources), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(trace_sources_add(&sources, &queues[i], &(struct flow_code){ 0 }),
				 0);
	assert_int_equal(trace_sources_size(&sources), UINT32_MAX + UINT64_C(2));
	trace_sources_free(&sources);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_is_kept_with_where_its_code_is),
		cmocka_unit_test(the_size_is_that_of_all_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
