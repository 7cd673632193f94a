/* `ptvm guest`: copies a guest's kernel code and symbols. */
#pragma once

#include "decode/base/error.h"

/** See struct verb in decode/base/verb.h. */
int cmd_guest(int argc, char **argv, struct ptvm_error *error);
