/* Threads that signals pass by: one that ends the process, or that somebody waits for, is for the
 * thread that knows what to do then. */
#pragma once

#include <pthread.h>

/** Start one, as pthread_create(3). Returns 0 or an errno. */
int quiet_thread_start(pthread_t *ret, void *(*run)(void *context), void *context);
