/* Lines of gaps and of packets that are not about flow, such as PTWRITE. Internal to the printer.
 */
#pragma once

#include "decode/print/printer.h"

/** An error line about printer->gap.kind. */
void print_gap(struct printer *printer, uint64_t ip);

/** A line for printer->event, a packet that is about something other than flow. */
void print_event(struct printer *printer, uint64_t payload);

/** A line about the interrupt flag, which has changed; `branch`: by what, NULL: by no branch. */
void print_interrupt_flag(struct printer *printer, const struct flow_item *branch);

/** A line about a transaction that begins or ends here. */
void print_transaction(struct printer *printer);
