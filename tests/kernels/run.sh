#!/bin/bash
# Traces a real kernel that patches its own code, and counts what ptvm finds of it. The kernel runs in QEMU without KVM,
# which logs every instruction; the log becomes a trace as hardware would write it, and the copies of the kernel, from
# before and after, are made by `ptvm guest`. Some minutes for each scenario; as root; installs what is missing.
# Usage: tests/kernels/run.sh BUILD DIRECTORY [SCENARIO...]
# BUILD is where meson built ptvm; what is made stays in DIRECTORY. Scenarios: nothing keys probes ftrace (all).
# KERNEL=FILE.deb is a kernel other than Debian's newest for clouds.
set -u -o pipefail
. "$(dirname "$0")/../need.sh"
usage "$@"
build=${1:?the directory of the build} to=${2:?the directory to write to}
shift 2
build=$(realpath "$build") to=$(realpath -m "$to") deb=${KERNEL:+$(realpath "$KERNEL")}
(($#)) || set -- nothing keys probes ftrace
cd "$(dirname "$0")/../.." || exit 1
need cpio gcc libc6-dev qemu-system-x86 seabios || exit 1
ptvm=$build/host/ptvm vcpus=2 qemu=
mkdir -p "$to"
trap '[[ -z $qemu ]] || kill "$qemu"' EXIT

make_kernel()
{
	local package

	[[ -z $deb && -f $to/vmlinuz ]] && return
	if [[ -z $deb ]]; then
		package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ { print $2; exit }')
		(cd "$to" && apt-get download -qq "$package") && deb=$(echo "$to/$package"_*.deb)
	fi
	rm -rf "$to/kernel"
	dpkg-deb -x "$deb" "$to/kernel" && cp "$to"/kernel/boot/vmlinuz-* "$to/vmlinuz"
}

make_initrd()
{
	mkdir -p "$to/root"/{dev,proc,sys} && cp -a /dev/console "$to/root/dev/" &&
		gcc -O2 -static -D_GNU_SOURCE -I. -o "$to/root/init" tests/kernels/init.c &&
		(cd "$to/root" && find . | cpio --quiet -o -H newc) >"$to/initrd"
}

# copied NUMBER DIRECTORY: the kernel of the guest that waits there
copied()
{
	until [[ -e $work/log.at-$1 ]]; do
		kill -0 "$qemu" || return 1
		sleep 0.2
	done
	"$ptvm" guest -p "$qemu" -c test:///default --via memory -o "$work/$2" && touch "$work/log.go-$1"
}

# With a thread for each CPU QEMU 7.2 goes on to execute an INT3 that is there no more, for ever.
emulate()
{
	qemu-system-x86_64 -accel tcg,thread=single -cpu max -smp "$vcpus" -m 512 -display none -nodefaults -no-reboot \
		-serial file:"$work/console" -kernel "$to/vmlinuz" -initrd "$to/initrd" \
		-append "console=ttyS0 quiet panic=-1 scenario=$1" \
		-plugin file="$build/tests/insn_log.so",log="$work/log" &
	qemu=$!
	copied 2 before && copied 3 after && wait "$qemu" && qemu=
}

# found COPY: what ptvm finds with that copy of the kernel
found()
{
	local guest=$work/$1

	"$ptvm" script -i "$work/data" --guestkallsyms "$guest/kallsyms" --guestmodules "$guest/modules" --itrace=i1i \
		--ns -F cpu,time,ip 2>"$work/said.$1" | "$build/tests/compare_truth" "$work" "$vcpus" "$work/differences.$1"
}

trace()
{
	work=$to/$1
	rm -rf "$work" && mkdir "$work" && emulate "$1" &&
		"$build/tests/kernel_recording" "$work/log" "$work/after/kallsyms" "$work" "$vcpus" && rm "$work"/log.* ||
		return 1
	for copy in before after; do
		echo "$1, copy from $copy: $(found "$copy")"
	done
}

make_kernel && make_initrd || exit 1
for scenario; do
	trace "$scenario" || { echo "$scenario: failed, see $to/$scenario"; exit 1; }
done
