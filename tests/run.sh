#!/bin/bash
# Runs the whole test suite: builds with gcc and clang, with sanitizers, and checks of the sources.
# Needs nothing but Debian 12; installs what is missing where it may.
# Usage: tests/run.sh [DIRECTORY to build in]
set -u -o pipefail
. "$(dirname "$0")/need.sh"
usage "$@"
cd "$(dirname "$0")/.." || exit 1
. tests/check.sh
need build-essential clang clang-format mandoc meson pkg-config python3 \
	libcmocka-dev libelf-dev libiberty-dev libjansson-dev libkmod-dev libtraceevent-dev libvirt-dev libzstd-dev \
	libzydis-dev || exit 1

builds=${1:-$PWD/build-tests}
log=$builds/log skipped=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
mkdir -p "$builds"

# build NAME COMPILER OPTION...: set up and compile in a directory of its own
build()
{
	local where=$builds/$1 compiler=$2

	shift 2
	rm -rf "$where"
	CC=$compiler meson setup "$where" -Dwerror=true "$@" && ninja -C "$where"
}

# suite NAME: run the tests of a build, and count them
suite()
{
	local counts p f s

	meson test -C "$builds/$1" --no-rebuild --print-errorlogs --quiet
	counts=$(tests/count.py "$builds/$1/meson-logs/testlog.json") || counts="0 1 0"
	read -r p f s <<<"$counts"
	echo "      $1: $p passed, $f failed, $s skipped"
	((passed += p, failed += f, skipped += s))
}

format()
{
	find decode host guest correlate tests -name '*.[ch]' -print0 2>/dev/null |
		xargs -0 clang-format --dry-run -Werror
}

manuals()
{
	mandoc -T lint -W warning docs/man/*.1
}

# What is installed runs from where it is, on the sample recording.
installed()
{
	local stage=$builds/stage ptvm file

	rm -rf "$stage"
	DESTDIR=$stage meson install -C "$builds/gcc" --no-rebuild || return 1
	ptvm=$(find "$stage" -type f -name ptvm -perm -u+x) && "$ptvm" --version || return 1
	for file in man1/ptvm{,-check,-correlate,-guest,-record,-script}.1 bash-completion/completions/ptvm \
		doc/ptvm/{README,architecture,howto-trace-a-guest}.md; do
		find "$stage" -path "*/$file*" | grep . || return 1
	done
	"$ptvm" script -i examples/vm-small --insn-trace | grep -c guest.kernel
}

# A real guest of libvirt, copied by every way.
guest()
{
	local p f

	if [[ $(id -u) != 0 ]]; then
		echo "skip  a real guest: only root can start one"
		((skipped += 1))
		return
	fi
	timeout 900 tests/guest/run.sh "$builds/gcc/host/ptvm" "$builds/gcc/tests/record_here" >"$log" 2>&1
	if [[ $? == 77 ]]; then
		tail -n 20 "$log"
		echo "skip  a real guest: it cannot run here"
		((skipped += 1))
		return
	fi
	grep -B 20 '^FAIL' "$log"
	read -r p f < <(sed -nE 's/^tests.guest: ([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$log")
	echo "      a real guest: ${p:-0} passed, ${f:-1} failed"
	((passed += ${p:-0}, failed += ${f:-1}))
}

check "includes go one way" tests/check_includes.py
check "format" format
check "manual pages" manuals
check "build with gcc" build gcc gcc && suite gcc
check "build with clang" build clang clang && suite clang
# Optimized more, it takes 90 s longer to build, and its tests 20 s less.
check "build with ASan and UBSan" build sanitized gcc -Dbuildtype=debugoptimized -Doptimization=1 \
	-Db_sanitize=address,undefined && suite sanitized
check "build of the decoder alone" build decoder gcc -Dlibvirt=disabled -Dtests=false
check "install" installed
guest
echo "ptvm: $passed passed, $failed failed, $skipped skipped"
((failed == 0))
