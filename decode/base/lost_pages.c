#include "decode/base/lost_pages.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* The first page of each row of lost pages; those that follow on each other are kept once. */
enum { PLACES = 256 };

static atomic_uintptr_t places[PLACES], latest;
static atomic_uint place_count;

static void remember(uintptr_t page, uintptr_t page_size)
{
	unsigned slot;

	if (atomic_exchange(&latest, page) + page_size == page)
		return;
	slot = atomic_fetch_add(&place_count, 1);
	if (slot < PLACES)
		atomic_store(&places[slot], page);
}

/* The handler. It runs in the thread that read the page, which then executes its instruction again.
 */
static void replace(int number, siginfo_t *info, void *context)
{
	const uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t page = (uintptr_t)info->si_addr & ~(page_size - 1);
	const int before = errno;

	if (info->si_code != BUS_ADRERR ||
	    mmap((void *)page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		(void)signal(SIGBUS, SIG_DFL);
	else
		remember(page, page_size);
	errno = before;
}

void lost_pages_survive(void)
{
	struct sigaction action = { .sa_sigaction = replace, .sa_flags = SA_SIGINFO | SA_RESTART };

	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGBUS, &action, NULL);
}

int lost_pages_check(struct bytes file, const char *path, struct ptvm_error *error)
{
	const unsigned count = atomic_load(&place_count);
	uintptr_t first = UINTPTR_MAX;

	for (unsigned i = 0; i < count && i < PLACES; i++) {
		uintptr_t place = atomic_load(&places[i]);

		if (place >= (uintptr_t)file.data && place - (uintptr_t)file.data < file.size &&
		    place < first)
			first = place;
	}
	if (first == UINTPTR_MAX)
		return 0;
	return ptvm_fail(error, PTVM_BAD_INPUT,
			 "%s: cannot be read from offset %#" PRIxPTR
			 ": was it cut short meanwhile?",
			 path, first - (uintptr_t)file.data);
}
