/* ptvm script: prints what ran, in order of time. */
#pragma once

#include "decode/base/error.h"

/** The verb; see struct verb. */
int cmd_script(int argc, char **argv, struct ptvm_error *error);
