#include "tests/tree_fixture.h"

struct fake_tree tree;

int tree_set_up(void **state)
{
	fake_tree_init(&tree);
	return 0;
}

int tree_tear_down(void **state)
{
	fake_tree_deinit(&tree);
	return 0;
}
