#include "tests/script_fixture.h"

#include <stdio.h>
#include <string.h>

void script_fixture_write(struct script_fixture *f, struct perf_build *build)
{
	struct bytes file = perf_build_file(build);

	fake_tree_bytes(&f->tree, file.data, file.size, "recording");
	perf_build_free(build);
}

void script_fixture_record(struct script_fixture *f, uint64_t flags)
{
	enum { FLAGS_AT = 40 };
	struct perf_build build = { 0 };
	uint64_t all;

	perf_build_pt(&build, 0, 1);
	memcpy(&all, build.attrs + FLAGS_AT, 8);
	all |= flags;
	memcpy(build.attrs + FLAGS_AT, &all, 8);
	perf_build_aux_event(&build, 0, 1000, 0, 8, 0);
	perf_build_aux(&build, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	perf_build_aux_event(&build, 0, 3000, 8, 8, 0);
	script_fixture_write(f, &build);
}

int script_fixture_set_up(void **state)
{
	static struct script_fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	fake_tree_init(&fixture.tree);
	(void)snprintf(fixture.recording, sizeof(fixture.recording), "%s/recording",
		       fixture.tree.path);
	(void)snprintf(fixture.raw, sizeof(fixture.raw), "%s/raw", fixture.tree.path);
	script_fixture_record(&fixture, 0);
	fake_tree_bytes(&fixture.tree, "\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82", 16,
			"raw");
	fixture.script.args.input = fixture.recording;
	*state = &fixture;
	return 0;
}

int script_fixture_tear_down(void **state)
{
	struct script_fixture *f = *state;

	script_fixture_close(f);
	fake_tree_deinit(&f->tree);
	return 0;
}

void script_fixture_close(struct script_fixture *f)
{
	script_close(&f->script);
	memset(&f->script, 0, sizeof(f->script));
	memset(&f->error, 0, sizeof(f->error));
	f->script.args.input = f->recording;
}

void script_fixture_raw(struct script_fixture *f)
{
	f->script.args.input = NULL;
	f->script.args.pt = f->raw;
}
