#!/bin/bash
# From nothing to the first look: builds ptvm and prints what a host and its guest ran around a VM
# entry and a VM exit, from the sample recording beside this file.
# Needs nothing but Debian 12; installs what is missing where it may.
# Usage: examples/quickstart.sh [DIRECTORY to build in]
set -eu
. "$(dirname "$0")/../tests/need.sh"
usage "$@"
cd "$(dirname "$0")/.."
need build-essential meson pkg-config libelf-dev libiberty-dev libjansson-dev libkmod-dev libtraceevent-dev \
	libzstd-dev libzydis-dev

build=${1:-$PWD/build-quickstart}
recording=examples/vm-small
ptvm=$build/host/ptvm

# quietly COMMAND...: what it says is for when it fails
quietly()
{
	local said

	said=$("$@" 2>&1) || { tail -n 40 <<<"$said" >&2 && exit 1; }
}

echo "Building in $build"
[[ -f $build/build.ninja ]] || quietly meson setup "$build" -Dtests=false
quietly ninja -C "$build"

echo "$ ptvm script -i $recording -C 1 --insn-trace -F +nr, around the first VM entry and exit:"
"$ptvm" script -i $recording -C 1 --insn-trace -F +nr | awk -v around=6 '
	match($0, /\] +(host|guest) /) {
		side = substr($0, RSTART + 1, RLENGTH - 1)
		if (last != "" && side != last) {
			for (i = NR > around ? NR - around : 1; i < NR; i++)
				if (i > printed)
					print before[i % around]
			print side ~ /guest/ ? "--- VM entry ---" : "--- VM exit ---"
			until = NR + around
			crossings++
		}
		last = side
		if (NR < until) {
			print
			printed = NR
		} else if (crossings == 2) {
			exit
		} else if (NR == until) {
			print "..."
		}
	}
	{ before[NR % around] = $0 }
	END { exit crossings < 2 }'
