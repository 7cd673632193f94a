/* `ptvm check`: says whether this host can trace its guests. */
#pragma once

#include "decode/base/error.h"

/** See struct verb in decode/base/verb.h. */
int cmd_check(int argc, char **argv, struct ptvm_error *error);
