#!/bin/bash
# Traces a real kernel that patches its own code, and counts what ptvm finds of it. The kernel runs in QEMU without KVM,
# which logs every instruction; the log becomes a trace as hardware would write it, and the copies of the kernel, from
# before and after, are made by `ptvm guest`. Some minutes for each scenario; as root; installs what is missing.
# Usage: tests/kernels/run.sh BUILD DIRECTORY [SCENARIO...]
# BUILD is where meson built ptvm; what is made stays in DIRECTORY. Scenarios: nothing keys keys-briefly probes
# probes-briefly modules bpf graph-briefly ftrace (all).
# KERNEL=FILE.deb is a kernel other than Debian's newest for clouds.
set -u -o pipefail
. "$(dirname "$0")/../need.sh"
usage "$@"
build=${1:?the directory of the build} to=${2:?the directory to write to}
shift 2
build=$(realpath "$build") to=$(realpath -m "$to") deb=${KERNEL:+$(realpath "$KERNEL")}
(($#)) || set -- nothing keys keys-briefly probes probes-briefly modules bpf graph-briefly ftrace
cd "$(dirname "$0")/../.." || exit 1
need cpio gcc libc6-dev linux-libc-dev qemu-system-x86 seabios xz-utils || exit 1
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

# put_module NAME: from the kernel's package into the root directory
put_module()
{
	local file

	file=$(find "$to/kernel/lib/modules" "$to/kernel/usr/lib/modules" -name "$1.ko*" 2>/dev/null | head -n 1)
	case $file in
	*.xz) xz -dc "$file" >"$to/root/$1.ko" ;;
	*) cp "$file" "$to/root/" ;;
	esac
}

make_initrd()
{
	mkdir -p "$to/root"/{dev,proc,sys} && cp -a /dev/console "$to/root/dev/" &&
		gcc -O2 -static -D_GNU_SOURCE -I. -o "$to/root/init" tests/kernels/init.c &&
		put_module brd && put_module loop && (cd "$to/root" && find . | cpio --quiet -o -H newc) >"$to/initrd"
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
	copied 2 kcore_dir__1 && copied 3 after && wait "$qemu" && qemu=
}

# judge COPY WHICH...: what ptvm finds with that copy of the kernel, of which WHICH... tells it
judge()
{
	echo "$scenario, copy from $1: $("$ptvm" script "${@:2}" --itrace=i1i --ns -F cpu,time,ip 2>"$work/said.$1" |
		"$build/tests/compare_truth" "$work" "$vcpus" "$work/differences.$1")"
}

# only DIRECTORY: what tells ptvm to take that copy alone
only()
{
	which=(-i "$work/data" --guestkallsyms "$1/kallsyms" --guestmodules "$1/modules")
}

trace()
{
	work=$to/$scenario
	rm -rf "$work" && mkdir "$work" && emulate "$scenario" &&
		"$build/tests/kernel_recording" "$work/log" "$work" "$vcpus" && rm "$work"/log.* || return 1
	only "$work/kcore_dir__1" && judge before "${which[@]}"
	only "$work/after" && judge after "${which[@]}"
	judge both -i "$work"
}

make_kernel && make_initrd || exit 1
for scenario; do
	trace || { echo "$scenario: failed, see $to/$scenario"; exit 1; }
done
