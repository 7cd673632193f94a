/* A run of `ptvm script` with a recording and a raw trace to open, in a directory of its own. */
#pragma once

#include "decode/script.h"
#include "tests/fake_tree.h"
#include "tests/perf_build.h"

struct script_fixture {
	struct fake_tree tree;
	char recording[96], raw[96]; /* their paths */
	struct script script;        /* with the recording as its input, not open */
	struct ptvm_error error;
};

/** For a case: `*state` is a script_fixture. */
int script_fixture_set_up(void **state);

/** Closes the script, too. */
int script_fixture_tear_down(void **state);

/** Close the script, and begin anew with no options but the input. */
void script_fixture_close(struct script_fixture *f);

/** Let the raw trace, of 16 bytes, be the input. */
void script_fixture_raw(struct script_fixture *f);

/** Let the recording be what was built; ends `build`. */
void script_fixture_write(struct script_fixture *f, struct perf_build *build);

/** Let it be of one CPU, with AUX records at 1000 and 3000 ns, as it is at first, and add flags to
 * those of its event. */
void script_fixture_record(struct script_fixture *f, uint64_t flags);
