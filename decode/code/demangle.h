/* Names of C++ and Rust symbols as in their source, by the GNU demangler (libiberty). As in perf,
 * functions are shown without their parameters. */
#pragma once

#include "decode/code/symbols.h"

/**
 * Replace the mangled names among those of one file, which is not trusted; in "NAME@plt" the name
 * alone. Names that would become far too long, or find no memory, stay as they are.
 */
void demangle_symbols(struct symbols *symbols);
