/* `ptvm correlate`: the TSC offset of every guest, and guest time made host time. */
#pragma once

#include "decode/base/error.h"

/** See struct verb in decode/base/verb.h. */
int cmd_correlate(int argc, char **argv, struct ptvm_error *error);
