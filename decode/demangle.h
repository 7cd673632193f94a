/* Names of C++ and Rust symbols as their authors wrote them, by the demangler of the GNU toolchain,
 * as perf has it: without the parameters of functions. */
#pragma once

#include "decode/symbols.h"

/**
 * Replace the mangled names among those of one file, which is not trusted; in "NAME@plt" the name
 * alone. Names that would become far too long, or find no memory, stay as they are.
 */
void demangle_symbols(struct symbols *symbols);
