/* `ptvm record`. */
#pragma once

#include "decode/base/error.h"

/** See decode/base/verb.h. */
int cmd_record(int argc, char **argv, struct ptvm_error *error);
