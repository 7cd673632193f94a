/* A process that works on untrusted data gives up the rights that it does not need. */
#pragma once

/**
 * From here on this process may only allocate and free memory (none that can be executed), use the
 * descriptors that it has open, and exit. All other system calls fail with EPERM; there is no way
 * back. Does nothing where the kernel has no seccomp filters, and on CPUs other than x86-64.
 */
void sandbox_enter(void);
