/* Where the kernel shows what runs here. Tests put trees of their own there. */
#pragma once

struct roots {
	const char *proc, *sys, *debugfs, *dev;
	const char *modules; /* the directories of kernels, with their modules; NULL: none */
};

/** The machine that we run on. */
static inline struct roots roots_here(void)
{
	return (struct roots){ "/proc", "/sys", "/sys/kernel/debug", "/dev", "/lib/modules" };
}
