/* `ptvm script`: prints what ran, in order of time. */
#pragma once

#include "decode/base/error.h"

/** See struct verb in decode/base/verb.h. */
int cmd_script(int argc, char **argv, struct ptvm_error *error);
