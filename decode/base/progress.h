/* A line on the user's terminal that says how far something is, written over and over. Where
 * standard error is no terminal nothing is written. */
#pragma once

/** Show it; the words as for printf(3). */
void progress_show(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Clear it, before anything else is written. */
void progress_clear(void);
