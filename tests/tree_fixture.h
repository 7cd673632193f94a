/* A tree of files for each test of a program, where that is all that its tests share. */
#pragma once

#include "tests/fake_tree.h"

/** That of the test at hand. */
extern struct fake_tree tree;

/** Make it; for cmocka. */
int tree_set_up(void **state);
/** The same, at the end of a test. */
int tree_tear_down(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)
