/* `ptvm record`: traces guests and their host. */
#pragma once

#include "decode/base/error.h"

/** See struct verb in decode/base/verb.h. */
int cmd_record(int argc, char **argv, struct ptvm_error *error);
