/* A process that works on what it does not trust gives up what it does not need. */
#pragma once

/**
 * From here on this process may take and return memory (none that can be executed), read, write and
 * talk through the descriptors that it has, and end. All else fails with EPERM; there is no way
 * back. Does nothing where the kernel has no seccomp filters, and on CPUs other than x86-64.
 */
void sandbox_enter(void);
