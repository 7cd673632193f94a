/* A verb of the command line, as `script` in `ptvm script`; host/ptvm.c holds the table of them. */
#pragma once

#include "decode/base/error.h"

struct verb {
	const char *name;
	/**
	 * Do the verb's work; the one place that may print.
	 *
	 * @argc, argv  argv[0] is the verb's name
	 * @error       filled where a negative value is returned
	 *
	 * Returns the exit status (0, or another when there is nothing more to say); -PTVM_END
	 * when the options were all of it (--help), also status 0; or an error, which main()
	 * prints: the status is 2 for -PTVM_BAD_USAGE and otherwise 1.
	 */
	int (*run)(int argc, char **argv, struct ptvm_error *error);
	const char *group; /* heading in `ptvm --help`; verbs of one group stand together */
	const char *summary;
};
