/* Any bytes as a recording that is corrected: brought back, it is what it was. */
#include <string.h>

#include "correlate/correlation.h"
#include "decode/base/cleanup.h"
#include "tests/fake_tree.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH = 96 };

static bool go_on(void *context, double done)
{
	return true;
}

static void assert_same(const char *path, const uint8_t *data, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen(path, "rb");
	_cleanup_free_ uint8_t *now = malloc(size + 1);

	if (!file || !now || fread(now, 1, size + 1, file) != size || memcmp(now, data, size))
		abort();
}

/* Returns whether there is something to bring back. */
static bool correct(const char *path)
{
	const struct watch watch = { go_on, NULL };
	const struct offsets_given none = { .count = 0 };
	struct correlation correlation = { 0 };
	struct apply_result result = { 0 };
	bool good = !correlation_open(&correlation, path, true, NULL) &&
		    !correlation_find(&correlation, &none, &watch, NULL) &&
		    !correlation_apply(&correlation, false, &watch, &result, NULL);

	correlation_close(&correlation);
	return good && result.changed;
}

static void bring_back(const char *path)
{
	const struct watch watch = { go_on, NULL };
	struct correlation correlation = { 0 };

	if (correlation_open(&correlation, path, true, NULL) ||
	    correlation_undo(&correlation, false, &watch, NULL))
		abort();
	correlation_close(&correlation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_tree tree;
	char path[PATH];

	fake_tree_init(&tree);
	fake_tree_bytes(&tree, data, size, "data");
	(void)snprintf(path, sizeof(path), "%s/data", tree.path);
	if (correct(path))
		bring_back(path);
	assert_same(path, data, size);
	fake_tree_deinit(&tree);
	return 0;
}
