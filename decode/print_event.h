/* Lines about something other than flow: gaps, and packets such as PTWRITE. Not for others than
 * printer.c. */
#pragma once

#include "decode/printer.h"

/** An error line about printer->gap_kind. */
void print_gap(struct printer *printer, uint64_t ip);

/** A line for printer->event, a packet that is about something other than flow. */
void print_event(struct printer *printer, uint64_t payload);
