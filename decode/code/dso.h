/* One file of code on disk as a process mapped it: its bytes and symbols by offset in the file.
 * Looked for and read at first use; checked against the build id where one is known. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/code/symbols.h"
#include "decode/perf/build_id.h"

struct dso {
	const char *name;         /* as perf prints it: the path, "[vdso]", "/tmp/perf-PID.map" */
	struct build_id build_id; /* none: not known, nothing is checked */
	bool is_anonymous;        /* memory without a file: its code is not in the recording */
	atomic_bool is_loaded;
	struct bytes file; /* empty: no code */
	bool is_mapped;
	struct symbols symbols; /* starts are offsets in the file */
	char *note;             /* why it was not found; NULL: nothing to say */
};

/** Where to look for files. */
struct dso_places {
	const char *symfs;        /* before every path */
	bool keep_mangled;        /* show names of C++ and Rust symbols as they are in the file */
	const char *build_id_dir; /* perf's cache: has .build-id/xx/yyyy/{elf,vdso,debug} */
};

/**
 * Find the file and read its symbols: the path itself, then the build-id cache; for the vDSO the
 * cache, then the one of this process. A file with another build id is not used.
 *
 * @note  set to why nothing was found, at most `size` bytes; "" when something was, or when the
 *        name is not that of a file
 *
 * Not to be called twice. Never fails: without memory less is known.
 */
void dso_load(struct dso *dso, const struct dso_places *places, char *note, size_t size);

/** Release file, symbols and note. */
void dso_unload(struct dso *dso);
