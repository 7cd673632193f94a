/* `ptvm check`: says whether this host can trace its guests. */
#pragma once

#include "decode/base/error.h"

/** See struct verb. */
int cmd_check(int argc, char **argv, struct ptvm_error *error);
