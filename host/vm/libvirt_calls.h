/* The calls of libvirt that ptvm makes, found by name at run time: the library needs fifty others,
 * which take longer to load than a short recording takes to decode, and it need not be installed.
 */
#pragma once

#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include "decode/base/error.h"

/* clang-format off */
#define LIBVIRT_CALLS(call) \
	call(virConnectClose) \
	call(virConnectGetLibVersion) \
	call(virConnectGetURI) \
	call(virConnectGetVersion) \
	call(virConnectNumOfDomains) \
	call(virConnectOpen) \
	call(virConnectOpenReadOnly) \
	call(virDomainFree) \
	call(virDomainGetID) \
	call(virDomainGetName) \
	call(virDomainGetState) \
	call(virDomainGetUUIDString) \
	call(virDomainIsActive) \
	call(virDomainLookupByID) \
	call(virDomainLookupByName) \
	call(virDomainLookupByUUIDString) \
	call(virDomainMemoryPeek) \
	call(virDomainQemuAgentCommand) \
	call(virDomainQemuMonitorCommand) \
	call(virGetLastErrorMessage) \
	call(virSetErrorFunc)
/* clang-format on */

/** Zero-initialise before use; release with libvirt_unload(). */
struct libvirt_calls {
#define CALL(name) __typeof__(name) *name;
	LIBVIRT_CALLS(CALL) /* first: library_load() fills them in */
#undef CALL
	void *library; /* libvirt-qemu, which libvirt comes with */
};

/** Load the library. Returns 0, or -PTVM_SYSTEM where it is not there or lacks a call. */
int libvirt_load(struct libvirt_calls *ret, struct ptvm_error *error);

/** Accepts zeroes. */
void libvirt_unload(struct libvirt_calls *calls);
