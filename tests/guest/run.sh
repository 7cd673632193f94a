#!/bin/bash
# Copies the kernel of a real guest by every way, and compares: a Debian cloud kernel, emulated by QEMU (no KVM needed)
# under a real libvirtd, with the QEMU guest agent and an ssh server. Some minutes; as root; installs what is missing.
# It is recorded, too, on this machine's kernel but without a trace, which RECORD_HERE does (tests/record_here.c).
# Usage: tests/guest/run.sh PTVM RECORD_HERE. Status 77: this machine cannot run such a guest.
set -u -o pipefail
. "$(dirname "$0")/../need.sh"
usage "$@"
ptvm=${1:?the ptvm to test} record=${2:?the record_here to test}
ptvm=$(realpath "$ptvm") record=$(realpath "$record")
cd "$(dirname "$0")" || exit 1
. ../check.sh
need busybox-static cpio dropbear-bin jq libvirt-clients libvirt-daemon-driver-qemu libvirt-daemon-system linux-perf \
	openssh-client openssh-sftp-server python3 qemu-guest-agent qemu-system-x86 seabios sshfs || exit 77

name=ptvm-test-$$ port=$((20000 + $$ % 10000))
virsh=(virsh -q -c qemu:///system)
work=$(mktemp -d) daemons=()
log=$work/log
chmod 755 "$work"
trap clean_up EXIT

# Daemons that were started here end here, unless somebody else has a guest by now.
clean_up()
{
	local daemon

	"${virsh[@]}" destroy "$name" >/dev/null 2>&1
	mountpoint -q "$work/mount" && fusermount3 -u "$work/mount"
	if [[ -z $("${virsh[@]}" list --name 2>/dev/null) ]]; then
		for daemon in "${daemons[@]}"; do
			kill "$(cat "/run/$daemon.pid")"
		done
	fi
	rm -rf "$work"
}

start_libvirt()
{
	local daemon

	"${virsh[@]}" version && return
	for daemon in virtlogd libvirtd; do
		pidof "$daemon" || { "$daemon" -d && daemons=("$daemon" "${daemons[@]}"); }
	done
	for _ in {1..50}; do
		"${virsh[@]}" version && return
		sleep 0.2
	done
	return 1
}

fetch_kernel()
{
	local package

	package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ { print $2; exit }')
	(cd "$work" && apt-get download -qq "$package" && dpkg-deb -x ./"$package"_*.deb kernel) &&
		cp "$work"/kernel/boot/vmlinuz-* "$work/vmlinuz"
}

# install_program FILE: into the initramfs, with its libraries
install_program()
{
	local file

	for file in "$1" $(ldd "$1" | grep -o '/lib[^ ]*'); do
		install -D "$file" "$work/root/$file" || return 1
	done
}

modules="virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_console failover
	net_failover virtio_net"

make_initramfs()
{
	local root=$work/root module applet

	mkdir -p "$root"/{bin,dev,etc/dropbear,mod,proc,root/.ssh,run,sys,tmp,var/run}
	cp /bin/busybox "$root/bin/"
	for applet in cat dd ifconfig insmod ln ls mkdir mount pidof sh sleep uname; do
		ln -s busybox "$root/bin/$applet"
	done
	install_program /usr/sbin/qemu-ga && install_program /usr/sbin/dropbear &&
		install_program /usr/lib/openssh/sftp-server || return 1
	ln -s openssh/sftp-server "$root/usr/lib/sftp-server"
	for module in $modules; do
		cp "$(find "$work/kernel" -name "$module.ko" | head -n 1)" "$root/mod/" || return 1
	done
	ssh-keygen -q -t ed25519 -N '' -f "$work/key"
	dropbearkey -t ed25519 -f "$root/etc/dropbear/host_key"
	cp "$work/key.pub" "$root/root/.ssh/authorized_keys"
	echo root:x:0:0:root:/root:/bin/sh >"$root/etc/passwd"
	echo /bin/sh >"$root/etc/shells"
	make_init >"$root/init"
	chmod -R go-w "$root" && chmod 755 "$root/init"
	(cd "$root" && find . | cpio -o -H newc | gzip -1) >"$work/initrd.gz"
}

make_init()
{
	cat <<-EOF
		#!/bin/sh
		mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
		for m in $(echo $modules); do insmod /mod/\$m.ko; done
		sleep 1
		ifconfig lo 127.0.0.1 up; ifconfig eth0 10.0.2.15 up
		mkdir /dev/virtio-ports
		for p in /sys/class/virtio-ports/*; do ln -s /dev/\${p##*/} /dev/virtio-ports/\$(cat \$p/name); done
		echo 1 >/proc/sys/kernel/kptr_restrict
		dropbear -r /etc/dropbear/host_key -E
		/usr/sbin/qemu-ga -m virtio-serial -p /dev/virtio-ports/org.qemu.guest_agent.0 &
		while :; do sleep 60; done
	EOF
}

# libvirt has to see it connect, too.
agent_answers()
{
	for _ in {1..60}; do
		"${virsh[@]}" qemu-agent-command "$name" '{"execute":"guest-ping"}' && return
		sleep 1
	done
	return 1
}

# RAM is in two pieces, below and above 4 GiB.
start_guest()
{
	cat >"$work/domain.xml" <<-EOF
		<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
		<name>$name</name><memory unit='MiB'>3072</memory><vcpu>1</vcpu>
		<os><type arch='x86_64' machine='q35'>hvm</type><kernel>$work/vmlinuz</kernel>
		<initrd>$work/initrd.gz</initrd><cmdline>console=ttyS0 quiet</cmdline></os>
		<cpu mode='maximum'/><features><acpi/></features>
		<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
		<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel></devices>
		<qemu:commandline>
		<qemu:arg value='-netdev'/><qemu:arg value='user,id=n0,hostfwd=tcp:127.0.0.1:$port-:22'/>
		<qemu:arg value='-device'/><qemu:arg value='virtio-net-pci,netdev=n0,bus=pcie.0,addr=0x10'/>
		</qemu:commandline></domain>
	EOF
	"${virsh[@]}" create "$work/domain.xml" && agent_answers
}

# The user's ssh with a configuration of our own.
set_up_ssh()
{
	mkdir "$work/bin"
	cat >"$work/ssh_config" <<-EOF
		Host guest
		HostName 127.0.0.1
		Port $port
		User root
		IdentityFile $work/key
		StrictHostKeyChecking no
		UserKnownHostsFile /dev/null
		LogLevel ERROR
	EOF
	printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$work/ssh_config" >"$work/bin/ssh"
	chmod 755 "$work/bin/ssh"
	PATH=$work/bin:$PATH
	ssh guest uname -r >"$work/release"
}

# The guest has no modules.dep, which nobody is told.
by_ssh()
{
	"$ptvm" guest --via ssh=guest -o "$work/ssh" 2>"$work/said" && [[ ! -s $work/said ]]
}

# What was copied by ssh is there in the same words, and what is known of modules, too.
by_mount()
{
	mkdir "$work/mount" && sshfs -F "$work/ssh_config" -o direct_io guest:/ "$work/mount" &&
		"$ptvm" guest --via mount="$work/mount" -o "$work/mounted" && fusermount3 -u "$work/mount" &&
		nearly_same "$work/ssh/kcore" "$work/mounted/kcore" && cmp "$work/ssh/kallsyms" "$work/mounted/kallsyms" &&
		same "$work/ssh/guest.json" "$work/mounted/guest.json" grep -v '"via"\|"copied_at"' &&
		grep '"\.text": 0' "$work/mounted/guest.json"
}

# The text of a kernel that runs is patched now and then, by a few bytes.
nearly_same()
{
	local differ

	[[ $(stat -c %s "$1") == $(stat -c %s "$2") ]] || return 1
	differ=$(cmp -l "$1" "$2" | wc -l)
	echo "$1 and $2 differ in $differ bytes"
	((differ < 1000))
}

text_is_in_place()
{
	ssh guest cat /proc/kallsyms | cmp - "$work/agent/kallsyms" &&
		ssh guest cat /proc/modules | cut -d ' ' -f 1,6 | cmp - <(cut -d ' ' -f 1,6 "$work/agent/modules")
}

# Types of modules' symbols are in lower case where the guest did not help, and nobody counts their users.
same_symbols_and_modules()
{
	same "$1/kallsyms" "$2/kallsyms" sed -E '/\[/ s/^([^ ]+ .)/\L\1/' &&
		same "$1/modules" "$2/modules" cut -d ' ' -f 1,2,5,6
}

# same A B COMMAND...: is what the command makes of two files the same?
same()
{
	local a=$1 b=$2

	shift 2
	cmp <("$@" "$a") <("$@" "$b")
}

# The copy from memory says that the monitor is used, and has the guest's facts.
from_memory()
{
	"$ptvm" guest --domain "$name" --via memory -o "$work/memory" 2>"$work/said" &&
		grep "QEMU's monitor" "$work/said" &&
		grep -F "\"$(cat "$work/release")\"" "$work/memory/guest.json" &&
		same "$work/memory/guest.json" "$work/agent/guest.json" \
			jq '[.build_id, .kaslr_offset, .boot_id] | map(.value)' &&
		same "$work/memory/guest.json" "$work/ssh/guest.json" jq '.module_files | map([.name, .build_id])' &&
		jq -e '.module_files | length > 0 and all(.build_id)' "$work/memory/guest.json"
}

# Without the right to read QEMU's memory libvirt does it.
from_memory_by_libvirt()
{
	setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace \
		"$ptvm" guest --domain "$name" --via memory -o "$work/peeked" &&
		./same_code.py "$work/memory/kcore" "$work/peeked/kcore" &&
		same_symbols_and_modules "$work/memory" "$work/peeked"
}

# A libvirt that does not know the guest leaves its process only: its memory is searched, and nobody asked.
from_memory_of_process()
{
	"$ptvm" guest -p "$(vm_pid)" -c test:///default --via memory -o "$work/searched" 2>"$work/said" &&
		[[ ! -s $work/said ]] && ./same_code.py "$work/agent/kcore" "$work/searched/kcore" &&
		same_symbols_and_modules "$work/agent" "$work/searched" &&
		same "$work/searched/guest.json" "$work/agent/guest.json" \
			jq '[.build_id, .kaslr_offset, .boot_id] | map(.value)'
}

# An agent that opens files tells the usual sections only, as many as there is time for.
sections_are_those_of_ssh()
{
	jq -e --slurpfile by_ssh "$work/ssh/guest.json" '[.module_files[] as $one | $one.sections // {} | to_entries[] |
		. as $part | $by_ssh[0].module_files[] | select(.name == $one.name) |
		.sections[$part.key] == $part.value] | length > 0 and all' "$work/agent/guest.json"
}

facts_are_the_guests()
{
	sections_are_those_of_ssh &&
		grep -F "\"$(cat "$work/release")\"" "$work/agent/guest.json" &&
		grep -F "\"$(ssh guest cat /proc/sys/kernel/random/boot_id)\"" "$work/ssh/guest.json"
}

# An agent that may not open files.
by_programs()
{
	local blocked="guest-file-open,guest-file-read,guest-file-seek,guest-file-close"

	ssh guest "kill \$(pidof qemu-ga); sleep 1; /usr/sbin/qemu-ga -d -m virtio-serial -b $blocked \
		-p /dev/virtio-ports/org.qemu.guest_agent.0" && agent_answers &&
		"$ptvm" guest --domain "$name" -o "$work/exec" &&
		same "$work/ssh/guest.json" "$work/exec/guest.json" grep -v '"via"\|"copied_at"\|"domain"' &&
		./same_code.py "$work/agent/kcore" "$work/exec/kcore" &&
		cmp "$work/agent/kallsyms" "$work/exec/kallsyms"
}

# recorded DIR OPTION...: the domain, whose kernel is there as the agent copied it
recorded()
{
	local to=$1 guest

	shift
	"$record" --domain "$name" "$@" -m 64K,64K --duration 500ms -o "$to" 2>"$work/said" || return 1
	cat "$work/said"
	grep "1 vCPU of $name" "$work/said" && grep "is emulated" "$work/said" &&
		guest=$(echo "$to"/kcore_dir__*) && ./same_code.py "$work/agent/kcore" "$guest/kcore" &&
		same_symbols_and_modules "$work/agent" "$guest" &&
		jq -e ".machines[0] | .name == \"$name\" and .vcpus[0].index == 0 and .libvirt_version and .vmm_version and
			.kernel.release.value == \"$(cat "$work/release")\"" "$to/data.ptvm.json" &&
		perf_reads "$to"
}

# No libvirt, no agent: the process is all there is.
recorded_alone()
{
	"$record" -p "$(vm_pid)" -c test:///default --via memory -m 64K,64K --duration 500ms -o "$work/alone" 2>"$work/said" &&
		./same_code.py "$work/agent/kcore" "$(echo "$work"/alone/kcore_dir__*)/kcore" &&
		jq -e ".machines[0].kernel.release.value == \"$(cat "$work/release")\"" "$work/alone/data.ptvm.json" &&
		perf_reads "$work/alone" && ! grep "monitor" "$work/said"
}

is_said_once()
{
	(($(grep -c "$1" "$work/said") == 1))
}

perf_reads()
{
	(($(perf script -i "$1" --show-switch-events | grep -c SWITCH)))
}

vm_pid()
{
	pgrep -f "guest=$name,"
}

by_process()
{
	"$ptvm" guest -p "$(vm_pid)" -o "$work/process" &&
		nearly_same "$work/agent/kcore" "$work/process/kcore" && jq -e ".domain == \"$name\"" "$work/process/guest.json"
}

# The commands of the monitor that libvirt notes.
is_not_tainted()
{
	! grep custom-monitor "/var/log/libvirt/qemu/$name.log"
}

is_paused()
{
	"${virsh[@]}" suspend "$name" &&
		"$record" --domain "$name" --via none -m 64K,64K --duration 100ms -o "$work/paused" 2>"$work/said" &&
		grep "domain '$name' is paused: virsh resume $name" "$work/said" && "${virsh[@]}" resume "$name"
}

# and runs again before the recording ends.
is_paused_meanwhile()
{
	local recorder

	"$record" --domain "$name" --via none -m 64K,64K --duration 60 -o "$work/pause" 2>"$work/said" &
	recorder=$!
	until [[ -e $work/pause/data.ptvm.json ]]; do sleep 0.1; done
	sleep 1
	"${virsh[@]}" suspend "$name" && sleep 2 && "${virsh[@]}" resume "$name" && sleep 1 && kill "$recorder"
	wait "$recorder"
	cat "$work/said"
	is_said_once "domain '$name' was paused for [1-9][0-9.]* s, and there is no trace of it then"
}

dies()
{
	"$record" --domain "$name" --via none -m 64K,64K --duration 60 -o "$work/dead" 2>"$work/said" &
	until [[ -e $work/dead/data.ptvm.json ]]; do sleep 0.1; done
	"${virsh[@]}" destroy "$name" && wait $! && cat "$work/said" &&
		grep "all traced threads have ended: the guest was shut down, or migrated" "$work/said" &&
		perf_reads "$work/dead"
}

handles_are_closed()
{
	ssh guest "ls -l /proc/\$(pidof qemu-ga)/fd" >"$work/fds" || return 1
	! grep '/proc/k\|/proc/modules' "$work/fds"
}

check "libvirt" start_libvirt || exit 77
check "kernel" fetch_kernel || exit 77
check "initramfs" make_initramfs || exit 1
check "the guest runs" start_guest || exit 1
check "the guest's ssh" set_up_ssh || exit 1
check "by the agent" "$ptvm" guest --domain "$name" -o "$work/agent"
check "by ssh" by_ssh
if [[ -w /dev/fuse ]]; then check "by a mount" by_mount; else echo "skip  by a mount: no /dev/fuse"; fi
check "both copied the same code" nearly_same "$work/agent/kcore" "$work/ssh/kcore"
check "symbols and modules are those that the guest shows" text_is_in_place
check "so are the facts" facts_are_the_guests
check "the agent's files are closed" handles_are_closed
check "by programs that the agent runs" by_programs
check "a recording has it all" recorded "$work/recording"
check "by the agent, named by its process" by_process
check "from memory of a process that libvirt does not know" from_memory_of_process
check "it is recorded with that" recorded_alone
check "until now the domain was not tainted" is_not_tainted
check "from memory" from_memory
check "there is the same code" ./same_code.py "$work/agent/kcore" "$work/memory/kcore"
check "there are the same symbols and modules" same_symbols_and_modules "$work/agent" "$work/memory"
check "the same by libvirt" from_memory_by_libvirt
check "a recording by memory has the same" recorded "$work/by-memory" --via memory
check "and says once what that means for the domain" is_said_once "calls the domain tainted"
check "a domain that is paused" is_paused
check "one that is paused for a while" is_paused_meanwhile
check "a domain that dies while it is recorded" dies
echo "tests/guest: $passed passed, $failed failed"
((failed == 0))
