#!/usr/bin/env python3
"""run.py PTVM: the command line of ptvm, on the recording of examples/vm-small; prints TAP."""
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import perf_file
import questions
import tap

PROJECT = pathlib.Path(__file__).resolve().parents[2]
RECORDING = PROJECT / "examples/vm-small"
GUEST = RECORDING / "kcore_dir__106"
PTVM = os.path.abspath(sys.argv[1])


def ptvm(*args, **more):
    return subprocess.run([PTVM, *args], capture_output=True, text=True, timeout=120, check=False, **more)


def equal(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"


def refused(args, message):
    """A wrong command line gets one sentence and status 2."""
    run = ptvm(*args)
    equal((run.returncode, run.stdout, run.stderr), (2, "", message + "\n"))


def on_terminal(args, **env):
    """The output of ptvm where it is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([PTVM, *args], stdin=theirs, stdout=theirs, stderr=theirs,
                          env={**os.environ, **env}) as run:
        os.close(theirs)
        out = b""
        try:
            while chunk := os.read(ours, 65536):
                out += chunk
        except OSError:
            pass
        os.close(ours)
    return run.returncode, out.decode(errors="replace")


def test_help_lists_the_verbs():
    for args in (["--help"], ["-h"], ["help"], ["--he"], ["help", "help"], ["help", "--help"]):
        run = ptvm(*args)
        equal(run.returncode, 0)
        assert run.stdout.startswith("Usage: ptvm VERB") and "\n  script " in run.stdout, run.stdout


def test_help_of_a_verb_is_its_option():
    run = ptvm("script", "--help")
    equal(run.returncode, 0)
    assert run.stdout.startswith("Usage: ptvm script"), run.stdout
    equal(ptvm("help", "script").stdout, run.stdout)
    long = [line for line in run.stdout.splitlines() if len(line) > 80]
    equal(long, [])


def test_scripts_say_how_they_are_used():
    for script in ("tests/run.sh", "tests/guest/run.sh", "examples/quickstart.sh"):
        for option, status in (("--help", 0), ("-h", 0), ("--foo", 2)):
            with tempfile.TemporaryDirectory() as where:
                run = subprocess.run([PROJECT / script, option], cwd=where, capture_output=True, text=True, check=False)
                equal((run.returncode, os.listdir(where)), (status, []))
            assert f"\nUsage: {script}" in run.stdout and "set -" not in run.stdout, run.stdout
            equal(run.stderr, "" if status == 0 else f"unknown option: {option}\n")


def test_a_raw_trace_is_told_from_others():
    with tempfile.TemporaryDirectory() as where:
        trace = pathlib.Path(where) / "trace"
        for content, args, message in (
                (b"some text that is no trace", ["--pt", trace], "nothing could be decoded: no PSB in it, where decoding begins"),
                (b"\x02\x82" * 8, ["-i", trace], "a raw trace, which 'ptvm script --pt' reads, not a recording"),
                (b"\x02\x82" * 8 + b"\x02\x23\x71" + b"\0" * 6 + b"\xff" * 2, ["--pt", trace],
                 "nothing could be decoded: name files of its code with --elf or --raw")):
            trace.write_bytes(content)
            run = ptvm("script", *args)
            equal((run.returncode, run.stderr.splitlines()[-1]), (1, f"ptvm script: {trace}: {message}"))


def test_a_trace_of_events_needs_no_code():
    begin, ptwrite, overflow = b"\x02\x82" * 8 + b"\x02\x23", b"\x02\x12" + struct.pack("<I", 0x1234), b"\x02\xf3"
    with tempfile.TemporaryDirectory() as where:
        trace = pathlib.Path(where) / "trace"
        for content, letters, words in ((begin + ptwrite, "w", "payload: 0x1234"), (begin, "p", "psb offs: 0"), (begin, "b", ""),
                                        (begin + overflow + ptwrite, "we", "payload: 0x1234"),
                                        (begin + ptwrite + overflow, "e", "Overflow packet")):
            trace.write_bytes(content)
            run = ptvm("script", "--pt", trace, f"--itrace={letters}")
            equal((run.returncode, "nothing could" in run.stderr), (0, False))
            assert words in run.stdout, run.stdout
        trace.write_bytes(begin + overflow)
        for most, status in ((1, 0), (2, 1)):
            equal((most, ptvm("script", "--pt", trace, "--itrace=e", "--max-lines", str(most)).returncode), (most, status))


def test_what_the_documents_show_is_printed():
    """Lines of instructions in the README and the how-to are those of the sample recording."""
    run = ptvm("script", "-i", RECORDING, "--insn-trace", "-C", "1", "-F", "+nr,-comm")
    printed = set(run.stdout.splitlines())
    for name, least in (("README.md", 10), ("docs/howto-trace-a-guest.md", 4)):
        shown = re.findall(r"^ {4}(.*\] (?:host|guest) .*)$", (PROJECT / name).read_text(), re.MULTILINE)
        assert len(shown) >= least, (name, shown)
        equal([line for line in shown if line not in printed], [])


def test_commands_of_the_howto_print_what_it_says():
    """On the sample recording; a command may go on in the next line, and a line that it prints may follow."""
    lines = iter((PROJECT / "docs/howto-trace-a-guest.md").read_text().splitlines())
    ran, printed = 0, []
    for line in lines:
        if line.startswith("    $ ") or not line.startswith("    "):
            printed = []
        if line.startswith("    $ ptvm script"):
            command = line[6:].replace("ptvm script", '"$0" script -i "$1"')
            while command.endswith("|"):
                command += next(lines)
            run = subprocess.run(["bash", "-c", command, PTVM, RECORDING], capture_output=True, text=True, timeout=120,
                                 check=False)
            equal((command, run.returncode, run.stderr), (command, 0, ""))
            printed = run.stdout.splitlines()
            ran += 1
        elif printed:
            assert line[4:] in printed, line
    assert ran >= 9, ran


def test_a_file_that_is_cut_short_while_it_is_read_is_told():
    for name, pages in (("data", 2), ("kcore_dir/kcore", 2), ("kcore_dir__106/kcore", 1)):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "recording"
            shutil.copytree(RECORDING, copy)
            with subprocess.Popen([PTVM, "script", "-i", copy, "--insn-trace", "-j", "1"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
                run.stdout.read(1)  # it goes on when more is read: a pipe has room for a part only
                os.truncate(copy / name, pages * os.sysconf("SC_PAGESIZE"))
                out, err = run.communicate(timeout=120)
            equal(run.returncode, 0)
            assert len(out) > 100000 and f"ptvm script: {copy}/{name}: cannot be read from offset" in err.decode(), err


def test_what_is_missing_at_the_end_of_a_recording_is_told():
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "recording"
        shutil.copytree(RECORDING, copy)
        start, size = struct.unpack_from("<QQ", (copy / "data").read_bytes(), 40)
        os.truncate(copy / "data", start + size - 8)
        for verb in (["script"], ["correlate", "--dry-run"]):
            run = ptvm(*verb, "-i", copy)
            equal(run.returncode, 0)
            assert f"{copy}/data: cut off, 8 bytes of its records are missing\n" in run.stderr, run.stderr


def test_a_guest_was_called_by_no_host():
    run = ptvm("script", "-i", RECORDING, "--itrace=i500ig", "-F", "nr,ip,dso", "-C", "1")
    chains = [chain.split("\n") for chain in run.stdout.split("\n\n") if chain]
    sides = {"host": "[kernel.kallsyms]", "guest": "[guest.kernel.kallsyms.106]"}
    for side, dso in sides.items():
        calls = [line for chain in chains if chain[0] == f"{side} " for line in chain[1:]]
        assert len(calls) > 50, f"{side}: {len(calls)} calls"
        assert all(f"({dso})" in line for line in calls), f"{side}: {[line for line in calls if dso not in line][:3]}"


def test_version_is_that_of_the_project():
    run = ptvm("--version")
    equal(ptvm("--vers").stdout, run.stdout)
    text = (PROJECT / "meson.build").read_text()
    equal(run.stdout, "ptvm " + text.split("version: '")[1].split("'")[0] + "\n")


def test_no_verb_gets_the_help():
    run = ptvm()
    equal((run.returncode, run.stdout), (2, ""))
    assert run.stderr.startswith("Usage: ptvm VERB"), run.stderr


def test_mistakes_get_one_sentence():
    refused(["scrpit"], "ptvm: 'scrpit' is not a ptvm command, did you mean 'script'?")
    refused(["zzzzzzzz"], "ptvm: 'zzzzzzzz' is not a ptvm command; see 'ptvm --help'")
    refused(["--wrong"], "ptvm: unknown option: --wrong; see 'ptvm --help'")
    refused(["--"], "ptvm: unknown option: --; see 'ptvm --help'")
    refused(["help", "script", "record"], "ptvm: unexpected argument: record; see 'ptvm --help'")
    refused(["script", "--wrong=1"], "ptvm script: unknown option: --wrong; see 'ptvm script --help'")
    refused(["script", "recording"], "ptvm script: unexpected argument: recording; name a file with -i, or see 'ptvm script --help'")
    refused(["script", "-i"], "ptvm script: option needs an argument: -i")
    refused(["correlate", "-i", ""], "ptvm correlate: option needs an argument: -i")
    refused(["script", "--insn-trace=all"], "ptvm script: --insn-trace takes raw, not 'all'")
    refused(["script", "-i", RECORDING, "--time=3,2"],
            "ptvm script: --time takes FROM,TO in seconds, rising, or 10%-20%, not '3,2'")
    refused(["script", "--max-lines=x"], "ptvm script: --max-lines takes a number, not 'x'")
    refused(["script", "--itrace=k"], "ptvm script: --itrace at 'k': the letters are i b c r e p w x I s g l G L q A Z")
    refused(["script", "-C", "x"], "ptvm script: -C takes numbers and ranges, as 0,2-3 or 0x1f, not 'x'")
    refused(["script", "--guest-only", "--host-only"], "ptvm script: --guest-only and --host-only exclude each other")
    refused(["script", "--reltime", "--deltatime"], "ptvm script: --reltime and --deltatime exclude each other")
    for option in ("--elf=vmlinux", "--mtc-freq=3", "--cpuid-0x15.ebx=2"):
        refused(["script", option], "ptvm script: --elf, --raw, --mtc-freq, --nom-freq and --cpuid-0x15 are for a trace "
                "without a recording: --pt")
    for option in ("-i", "--kallsyms", "--guestmount"):
        refused(["script", "--pt=trace", option, "x"], "ptvm script: -i, -k, --kallsyms, --symfs and --guest... are for a "
                "recording: with --pt, code comes from --elf and --raw")
    refused(["script", "--pt=trace", "--mtc-freq=16"], "ptvm script: --mtc-freq takes 0 to 15, as in IA32_RTIT_CTL")
    refused(["script", "--pt=trace", "--nom-freq=256"], "ptvm script: --nom-freq takes 1 to 255, in units of 100 MHz")
    refused(["script", "--pt=trace", "--cpuid-0x15.eax=0x100000000"],
            "ptvm script: --cpuid-0x15.eax and .ebx take numbers of 32 bits")


def test_options_of_perf_that_are_not_here_say_what_does_it():
    for option, reason in (("--symbols=x", "grep finds symbols among the lines"), ("--switch-on", "--time selects"),
                           ("--max-stack=9", "--itrace=g8 and G8 print 8 calls"), ("-v", "what is wrong is always reported"),
                           ("-s", "perf runs scripts, also on recordings of ptvm")):
        refused(["script", option], f"ptvm script: {option.split('=')[0]} is not here: {reason}")


def test_names_of_an_address_that_is_left_out_are_missed():
    run = ptvm("script", "-i", RECORDING, "-C1", "--itrace=i100i", "-F", "sym")
    equal((run.returncode, run.stdout.strip(), run.stderr),
          (0, "", "ptvm script: sym and dso are those of ip or addr, and symoff is that of sym, which -F leaves out\n"))
    for args in (["--itrace=w", "-F", "sym"], ["--itrace=i100i", "-F", "comm"], ["--call-trace", "-F", "sym,callindent"]):
        equal((args, ptvm("script", "-i", RECORDING, "-C1", *args).stderr), (args, ""))


def perf_script_options():
    """Letters and long names, as `perf script -h` lists them."""
    text = subprocess.run(["perf", "script", "-h"], capture_output=True, text=True, check=False)
    rows = re.findall(r"^ {4}(?:(-\w), |    )(--[\w-]+)", text.stdout + text.stderr, re.M)
    return {name for row in rows for name in row if name}


def test_times_that_are_left_out_are_missed():
    for fields, note in (("time,ip", "ptvm script: time is 0 in all lines: the trace has none, or --itrace=Z leaves it out\n"), ("ip", "")):
        run = ptvm("script", "-i", RECORDING, "--itrace=i1000iZ", "-F", fields)
        equal((run.returncode, run.stderr), (0, note))


def test_every_option_of_perf_is_there_or_refused_with_a_reason():
    tap.need("perf")
    if "version 6.1." not in subprocess.run(["perf", "--version"], capture_output=True, text=True, check=False).stdout:
        raise tap.Skip("perf is not 6.1")
    options = perf_script_options()
    assert len(options) > 60, options
    unknown = {option for option in options if ptvm("script", option).stderr.startswith("ptvm script: unknown option")}
    equal(unknown, set())


def test_a_selection_of_nothing_says_what_there_is():
    for options, message in [(["--vcpu", "9"], "--vcpu 9: there are 0"),
                             (["-C", "7-8"], "-C 7-8: there are 0, 1"),
                             (["--comms=nosuch"], "--comms nosuch: there are 'swapper', 'CPU 0/KVM', 'perf-exec', 'qemu-system-x86'"),
                             (["--time", "1,2"], "--time 1,2: the recording is from 26.863301724 to 26.936158424"),
                             (["--time", "26.87,26.871"],
                              "--time 26.87,26.871: nothing was traced from 26.868804854 to 26.872037652"),
                             (["-C0", "--time=26.864,26.868"], "--time 26.864,26.868: nothing was traced before 26.868666910"),
                             (["-C1", "--time=26.9,26.91"], "--time 26.9,26.91: nothing was traced after 26.867894861"),
                             (["--itrace=e", "--vcpu=9"], "--vcpu 9: there are 0"),
                             (["--vmcs=0x1"], "--vmcs 0x1 (-F vmcs prints which there are)"),
                             (["--tid=113", "--comms=swapper"], "--tid 113 --comms swapper"),
                             (["--guest-only", "-C0"], "-C 0 --guest-only"),
                             (["--tid=1", "--host-only"], "--tid 1: there are 0 (swapper), 15 (no name), 23 (no name), "
                              "261 (no name), 33 (no name), 113 (CPU 0/KVM), 35 (no name), 9 (no name) and others"),
                             (["--pid=113"], "--pid 113: there are 0, 15, 23, 261, 33, 106, 35, 9 and others")]:
        run = ptvm("script", "-i", RECORDING, *options)
        equal((run.returncode, run.stdout, run.stderr), (0, "", f"ptvm script: nothing matches {message}\n"))
    run = ptvm("script", "-i", RECORDING, "--no-itrace", "--insn-trace")
    equal((run.returncode, run.stdout, run.stderr),
          (0, "", "ptvm script: --no-itrace leaves the trace out, and there is nothing else\n"))
    for options in (["--itrace=e"], ["--itrace=e", "-C", "1"], ["--itrace=w", "--guest-only"]):
        run = ptvm("script", "-i", RECORDING, *options)
        equal((run.returncode, run.stdout, run.stderr), (0, "", ""))


def test_samples_in_the_trace_are_not_passed_over_in_silence():
    """PEBS by way of the trace: there is no event of that kind here, unless the second one is made one."""
    equal(ptvm("script", "-i", RECORDING, "--itrace=bo").stdout, ptvm("script", "-i", RECORDING, "--itrace=b").stdout)
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "recording"
        shutil.copytree(RECORDING, copy)
        data = bytearray((copy / "data").read_bytes())
        entry, attrs = struct.unpack_from("<QQ", data, 16)
        data[attrs + entry + 43] |= 0x80  # aux_output
        (copy / "data").write_bytes(data)
        refused(["script", "-i", copy, "--itrace=o"],
                "ptvm script: --itrace: 'o' (PEBS by way of the trace) is not decoded yet, leave it out")
        for args, lines in ((["--itrace=e"], 1), (["-D"], 0), (["--no-itrace", "--show-switch-events"], 0)):
            run = ptvm("script", "-i", copy, *args)
            equal((args, run.returncode, run.stderr.count(": its samples are in the trace (PEBS), ")), (args, 0, lines))


def test_xed_is_there_by_itself():
    plain, xed, instead = (ptvm("script", "-i", RECORDING, "-C", "1", "--max-lines", "500", *args).stdout
                           for args in (["--insn-trace"], ["--insn-trace", "--xed"], ["--insn-trace=raw", "--xed"]))
    assert len(plain.splitlines()) == 500 and "insn:" not in plain, plain[:200]
    equal((xed, instead), (plain, plain))


def test_a_dump_can_be_of_some_cpus_and_lines():
    lines = ptvm("script", "-D", "-i", RECORDING).stdout.splitlines(keepends=True)
    buffers = [int(line.split()[-1]) for line in lines if ": PERF_RECORD_AUXTRACE size" in line]
    assert set(buffers) == {0, 1}, buffers
    for number in (1, 2, 100, len(lines) - 1, len(lines), len(lines) + 1):
        run = ptvm("script", "-D", "-i", RECORDING, "--max-lines", str(number))
        equal((run.returncode, run.stdout, run.stderr), (0, "".join(lines[:number]), ""))
    one, other, none = (ptvm("script", "-D", "-i", RECORDING, "-C", cpu).stdout for cpu in ("0", "1", "7"))
    for out, cpu in ((one, 0), (other, 1)):
        equal([int(line.split()[-1]) for line in out.splitlines() if ": PERF_RECORD_AUXTRACE size" in line],
              [cpu] * buffers.count(cpu))
        equal({line.split()[0] for line in out.splitlines() if "PERF_RECORD_SWITCH" in line}, {str(cpu)})
        assert "PERF_RECORD_TIME_CONV" in out
    assert "PERF_RECORD_TIME_CONV" in none and " PSB" not in none and "SWITCH" not in none
    for option in (["--time", "1,2"], ["--tid=1"], ["--pid=1"], ["-c", "x"], ["--vcpu=0"], ["--vmcs=1"], ["--guest-only"],
                   ["--host-only"]):
        refused(["script", "-D", "-i", RECORDING, *option],
                "ptvm script: -D is of all records and packets: of the selections it takes -C and --max-lines")


def test_a_dump_of_a_raw_trace_can_be_of_some_lines():
    with tempfile.TemporaryDirectory() as place:
        trace = pathlib.Path(place) / "trace"
        trace.write_bytes(bytes([0x02, 0x82] * 8 + [0x02, 0x23] * 50000))
        run = ptvm("script", "--pt", trace, "-D", "--max-lines=3")
    equal((run.returncode, len(run.stdout.splitlines()), run.stderr), (0, 3, ""))


def elf_of(code, address):
    """An ELF file whose only segment is this code."""
    head = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 2, 62, 1, address, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return head + struct.pack("<IIQQQQQQ", 1, 5, 120, address, address, len(code), len(code), 4096) + code


def test_a_raw_trace_is_followed_through_files_of_code():
    code = bytes.fromhex("90 7501 90 90 ffe0")  # nop; jnz over the next; nop; nop; jmp *%rax
    at = 0x400000
    tsc = b"\x19" + struct.pack("<Q", 6_000_000_000)[:7]
    begin = bytes.fromhex("0282" * 8 + "9901") + tsc + bytes.fromhex("0273 0000 0000 0000 0223")  # PSB, MODE.Exec, TMA, PSBEND
    mtc = b"\x59\x01"
    run = b"\x71" + struct.pack("<Q", at)[:6] + b"\x06" + b"\x61" + struct.pack("<Q", 0x500000)[:6]  # PGE, taken, PGD
    with tempfile.TemporaryDirectory() as place:
        files = {"trace": begin + mtc + run, "kernel": begin + run.replace(struct.pack("<Q", at)[:6], b"\0\0\0\x80\xff\xff"),
                 "out": begin + run[:7] + b"\x01", "nops": b"\x90" * 100000, "odd": b"\xff" * 3 + begin + run + b"\xff", "elf": elf_of(code, at),
                 "low": elf_of(code, 0x1000), "raw": code, "padded": bytes(16) + code + bytes(16)}
        for name, data in files.items():
            (pathlib.Path(place) / name).write_bytes(data)

        def script(*args):
            run = ptvm("script", "--itrace=i1i", *args, cwd=place)
            equal(run.returncode, 0)
            return [" ".join(line.split()) for line in run.stdout.splitlines()]

        ran = ["400000", "400001", "400004", "400005"]
        end = len(files["odd"]) - 1
        for trace in ("--pt=trace", f"--pt=odd:3-{end}", f"--pt=odd:0x3-{end:#x}"):
            for option in ("--elf=elf", f"--elf=low:{at - 0x1000:#x}", "--raw=raw:0x400000", "--raw=padded:16-23:0x400000",
                           "--raw=padded:0x10-0x17:4194304"):
                equal((trace, option, script(trace, option, "-F", "ip")), (trace, option, ran))
        equal(script("--pt=out", "--raw=raw:0x400000", "-F", "ip"), ran[:2])  # an address filter may have ended it there
        loop = ptvm("script", "--itrace=e", "--pt=trace", "--raw=nops:0x400000", cwd=place)
        assert loop.stderr == "ptvm script: 1 instruction trace error: Never-ending loop (refer perf config " \
            "intel-pt.max-loops)\n", loop.stderr  # no code is so long without a branch
        clock = ("--mtc-freq=3", "--nom-freq=20", "--cpuid-0x15.eax=2", "--cpuid-0x15.ebx=200", "--cpu=6/85/4")
        equal(script("--pt=trace", "--raw=raw:0x400000", "-F", "ip,time", "--ns", *clock)[0], "3.000000400: 400000")
        packets = ptvm("script", "-D", f"--pt=odd:3-{end}", cwd=place).stdout.splitlines()
        equal([line.split()[-1 if "PSBEND" in line else -2] for line in packets[-4:-2]], ["PSBEND", "TIP.PGE"])
        for args, status, complaint in ((["--pt=trace:80-90"], 1, "trace: no trace in bytes"), (["--pt=trace", "--elf=raw"], 1, "raw: "),
                                        (["--pt=trace", "--raw=raw"], 2, "--raw takes FILE[:FROM-TO]:ADDRESS, not 'raw'"),
                                        (["--pt=trace", "--cpu=6"], 2, "--cpu takes FAMILY/MODEL[/STEPPING], not '6'"),
                                        (["--pt=trace"], 1, "trace: nothing could be decoded: name files of its code with "),
                                        (["--pt=kernel", "--elf=elf"], 1, "kernel: nothing could be decoded")):
            run = ptvm("script", "--itrace=i1i", *args, cwd=place)
            equal((args, run.returncode), (args, status))
            assert run.stderr.splitlines()[-1].startswith(f"ptvm script: {complaint}"), run.stderr
            assert "kallsyms" not in run.stderr, run.stderr


def test_guest_says_which_way_it_wants():
    refused(["guest"], "ptvm guest: which guest? name it with --domain or -p, or a way to it with --via")
    refused(["guest", "--via", "wire"], "ptvm guest: --via takes agent, ssh=[USER@]HOST, mount=DIR or memory, not 'wire'")
    refused(["guest", "--via", "mount=/,wire"], "ptvm guest: --via takes agent, ssh=[USER@]HOST, mount=DIR or memory, not 'wire'")
    refused(["guest", "--via", "memory"], "ptvm guest: which guest? name it with --domain or -p, or a way to it with --via")
    refused(["guest", "--via", "ssh="], "ptvm guest: ssh: no host is named")
    refused(["guest", "--domain="], "ptvm guest: --domain needs the name of a guest")
    refused(["guest", "--domain=a", "-p1"], "ptvm guest: --domain and -p both name the guest")
    refused(["guest", "-p", "99999999999"], "ptvm guest: -p takes the number of a process, not '99999999999'")


def test_a_guest_can_be_a_process():
    """One by hand, which libvirt does not know."""
    with tempfile.TemporaryDirectory() as place:
        qemu = pathlib.Path(place) / "qemu-system-x86_64"
        qemu.symlink_to(shutil.which("sleep"))
        with subprocess.Popen([qemu, "60"]) as process:
            try:
                while not pathlib.Path(f"/proc/{process.pid}/cmdline").read_text():
                    time.sleep(0.01)  # Popen returns early in the call of execve()
                for options, message in [(["-p", process.pid], "the process has no -uuid by which libvirt could know it; --via memory, "),
                                         (["-p", process.pid, "--via", "memory"], f"no VMCOREINFO in the memory of process {process.pid}: "),
                                         (["-p", process.pid, "--via", f"mount={place}"], f"{place}/proc/kallsyms: "),
                                         (["-p", os.getpid(), "--via", f"mount={place}"], f"process {os.getpid()} ")]:
                    run = ptvm("guest", *map(str, options), "-o", f"{place}/copy")
                    equal((run.returncode, run.stdout), (1, ""))
                    assert run.stderr.startswith(f"ptvm guest: {message}"), run.stderr
                    equal(os.listdir(place), ["qemu-system-x86_64"])
            finally:
                process.kill()


def test_a_copy_that_is_interrupted_leaves_nothing_behind():
    def interrupt():
        """A signal that waits until it is taken."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.kill(os.getpid(), signal.SIGINT)

    with tempfile.TemporaryDirectory() as place:
        (pathlib.Path(place) / "proc").mkdir()
        (pathlib.Path(place) / "proc/modules").write_text("")
        run = ptvm("guest", "--via", f"mount={place}", "-o", f"{place}/copy", preexec_fn=interrupt)
        equal((run.returncode, run.stdout, run.stderr), (1, "", "ptvm guest: interrupted\n"))
        equal(os.listdir(place), ["proc"])


def test_a_guest_that_is_not_there_leaves_nothing():
    with tempfile.TemporaryDirectory() as place:
        run = ptvm("guest", "--via", f"mount={place}", "-o", f"{place}/copy")
        equal((run.returncode, run.stdout), (1, ""))
        assert run.stderr.startswith(f"ptvm guest: {place}/proc/kallsyms: "), run.stderr
        equal(os.listdir(place), [])


def test_one_way_to_a_guest_is_tried_after_the_other():
    with tempfile.TemporaryDirectory() as place:
        run = ptvm("guest", "--via", f"mount={place}/no,mount={place}", "-o", f"{place}/copy")
        equal(run.returncode, 1)
        first, second = run.stderr.splitlines()
        assert first.startswith(f"ptvm guest: by mount={place}/no: {place}/no: No such file"), run.stderr
        assert second.startswith(f"ptvm guest: {place}/proc/kallsyms: "), run.stderr


def test_what_is_no_recording_is_named():
    with tempfile.TemporaryDirectory() as place:
        for verb in ("script", "correlate"):
            run = ptvm(verb, cwd=place, stdin=subprocess.DEVNULL)
            equal((run.returncode, run.stdout), (1, ""))
            equal(run.stderr, f"ptvm {verb}: no ptvm.data or perf.data here: name the recording with -i\n")
            run = ptvm(verb, "-i", "/dev/zero")
            equal((run.returncode, run.stderr), (1, f"ptvm {verb}: /dev/zero: not a perf.data file\n"))
        os.makedirs(f"{place}/directory/data")
        run = ptvm("script", "-i", "directory", cwd=place)
        equal((run.returncode, run.stderr), (1, "ptvm script: directory/data: not a regular file\n"))


def test_files_that_are_named_must_be_there():
    for option in ("--guestmodules", "--guestkallsyms", "--kallsyms", "-k", "--symfs", "--guestmount"):
        run = ptvm("script", "-i", RECORDING, option, "/nonexistent")
        equal((run.returncode, run.stdout, run.stderr),
              (1, "", "ptvm script: /nonexistent: No such file or directory\n"))
    run = ptvm("script", "-i", RECORDING, "--symfs", "/etc/passwd")
    equal((run.returncode, run.stderr), (1, "ptvm script: /etc/passwd: Not a directory\n"))


def test_kernels_may_lie_beside_the_recording():
    """The guest's below --guestmount, or both as files of code with neither symbols nor kallsyms."""
    whole = ptvm("script", "-i", RECORDING, "--insn-trace").stdout
    with tempfile.TemporaryDirectory() as place:
        mounted, bare = pathlib.Path(place) / "106", pathlib.Path(place) / "recording"
        shutil.copytree(GUEST, mounted / "proc")
        bare.mkdir()
        shutil.copy(RECORDING / "data", bare)
        shutil.copytree(RECORDING / "kcore_dir", bare / "kcore_dir")
        run = ptvm("script", "-i", bare, "--guestmount", place, "--insn-trace")
        equal((run.returncode, run.stderr, run.stdout == whole), (0, "", True))
        shutil.rmtree(bare / "kcore_dir")
        code = ["-i", RECORDING, "--insn-trace=raw", "-F", "-sym,-symoff,-dso"]
        expected = ptvm("script", *code).stdout
        code[1] = bare
        run = ptvm("script", *code, "-k", RECORDING / "kcore_dir/kcore", "--guestvmlinux", GUEST / "kcore")
        equal((run.returncode, run.stderr), (0, ""))
        assert run.stdout == expected and len(expected.splitlines()) > 100000


def test_threads_change_nothing():
    for args in (["--insn-trace"], ["--itrace=be", "-F", "+ipc"], ["--call-trace"], ["--itrace=i1000ig"], ["-D"],
                 ["--show-switch-events", "--time", "30%-60%"]):
        one, *others = (ptvm("script", "-i", RECORDING, *args, "-j", jobs) for jobs in ("1", "2", "7", "64"))
        assert len(one.stdout) > 10000, args
        equal((args, [run.stdout == one.stdout and run.stderr == one.stderr for run in others]), (args, [True] * 3))


def test_errors_have_the_same_thread_whatever_is_printed_beside():
    """Also where no code tells when the kernel switches from one to the other."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copy(RECORDING / "data", place)
        alone, beside = ([line for line in ptvm("script", "-i", f"{place}/data", itrace).stdout.splitlines() if " error " in line]
                         for itrace in ("--itrace=e", "--itrace=be"))
    threads = {line.partition(" tid ")[2].split()[0] for line in alone}
    assert len(alone) > 100 and len(threads) > 2, (len(alone), threads)
    equal([pair for pair in zip(alone, beside) if pair[0] != pair[1]], [])
    equal(len(alone), len(beside))


def test_instructions_may_be_in_the_syntax_of_intel():
    att, intel = (ptvm("script", "-i", RECORDING, "-C1", "--insn-trace", "-F", "ip,disasm", *option).stdout.splitlines()
                  for option in ([], ["--intel"]))
    at = next(number for number, line in enumerate(att) if "vmresume" in line) - 4
    equal(att[at].split(maxsplit=1)[1], "mov 0x78(%rax), %r15")
    equal(intel[at].split(maxsplit=1)[1], "mov r15, [rax+0x78]")
    equal([line.split()[0] for line in intel], [line.split()[0] for line in att])


def test_a_recording_without_trace_says_so():
    with tempfile.TemporaryDirectory() as place:
        short = pathlib.Path(place) / "short"
        short.write_bytes((RECORDING / "data").read_bytes()[:3000])
        run = ptvm("script", "-i", short)
        equal((run.returncode, run.stdout), (0, ""))
        equal(run.stderr.splitlines()[0], f"ptvm script: {short}: no trace in this recording")


def test_damaged_records_are_counted():
    with tempfile.TemporaryDirectory() as place:
        damaged = pathlib.Path(place) / "damaged"
        data = bytearray((RECORDING / "data").read_bytes())
        at = next(data.index(record) for kind, record in perf_file.PerfFile(RECORDING / "data").records
                  if kind == perf_file.ID_INDEX)
        data[at + 15] = 1  # more entries than any record can have
        damaged.write_bytes(data)
        run = ptvm("script", "-i", damaged, "--itrace=e")
        assert f"ptvm script: {damaged}: 1 damaged record\n" in run.stderr, run.stderr


def test_without_tnt_packets_only_addresses_are_told():
    questions_of = [["script", "-i", RECORDING, *more, "-F", "tid,cpu,time,ip,addr,flags"]
                    for more in (["--itrace=bi1i"], ["--itrace=bi1iq"])]
    followed, quick = (ptvm(*args).stdout for args in questions_of)
    assert len(quick) < len(followed) / 10, (len(quick), len(followed))
    with tempfile.TemporaryDirectory() as directory:
        file = perf_file.PerfFile(RECORDING / "data")
        # config is the second u64 of an attr; bit 55 is notnt
        file.events = [(attr[:8] + struct.pack("<Q", struct.unpack_from("<Q", attr, 8)[0] | 1 << 55) + attr[16:], ids)
                       for attr, ids in file.events]
        shutil.copytree(RECORDING, f"{directory}/notnt")
        file.write(pathlib.Path(directory) / "notnt/data")
        for args in questions_of:
            args[2] = f"{directory}/notnt"
            run = ptvm(*args)
            equal((run.returncode, run.stdout), (0, quick))


def test_a_recording_that_is_not_there_is_a_failure():
    run = ptvm("script", "-i", "/nonexistent/recording")
    equal((run.returncode, run.stdout, run.stderr.count("\n")), (1, "", 1))
    assert run.stderr.startswith("ptvm script: ") and "/nonexistent/recording" in run.stderr, run.stderr


def test_a_recording_of_other_things_than_files_is_a_failure():
    with tempfile.TemporaryDirectory() as place:
        data = pathlib.Path(place) / "data"
        for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")):
            make(data)
            for verb in ("script", "correlate"):
                run = ptvm(verb, "-i", place)
                equal((run.returncode, run.stdout, run.stderr), (1, "", f"ptvm {verb}: {data}: not a regular file\n"))
            (os.rmdir if data.is_dir() else os.unlink)(data)


def test_completion_knows_verbs_and_options():
    words = ptvm("--complete").stdout
    assert "script\t" in words, words
    options = ptvm("script", "--complete").stdout
    assert "--input=\t" in options and "--help\t" in options, options


def test_bash_completes():
    script = PROJECT / "docs/completion/ptvm.bash"
    tap.need("bash")
    ask = f"""ptvm() {{ "{PTVM}" "$@"; }}; source "{script}"
        COMP_WORDS=(ptvm script --inp); COMP_CWORD=2; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm scr); COMP_CWORD=1; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm guest --output = docs/ma); COMP_CWORD=4; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm script -i docs/ma); COMP_CWORD=3; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm script -F ip,sym); COMP_CWORD=3; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm script -F +insn); COMP_CWORD=3; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm script --insn-trace =); COMP_CWORD=3; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm script --insn-trace --inp); COMP_CWORD=3; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm record --via = m); COMP_CWORD=4; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm record --via = mount = docs/ma); COMP_CWORD=6; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm record --control = fifo : docs/ma); COMP_CWORD=6; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm script -F hw : ip,sym); COMP_CWORD=5; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm help ""); COMP_CWORD=2; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm help s); COMP_CWORD=2; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm record --duration ""); COMP_CWORD=3; _ptvm; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(ptvm record -- moun); COMP_CWORD=3; _ptvm; echo "${{COMPREPLY[*]}}" """
    run = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, cwd=PROJECT)
    lines = run.stdout.splitlines()
    assert "mount" in lines.pop().split(), run.stdout
    equal(lines, ["--input=", "script", "docs/man", "docs/man", "ip,sym ip,symoff", "+insn +insnlen", "raw", "--input=",
                  "mount= memory", "docs/man", "docs/man", "ip,sym ip,symoff",
                  "check record guest correlate script", "script", ""])


def test_a_closed_pipe_ends_quietly():
    for ignore in (False, True):
        def prepare():
            signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignore else signal.SIG_DFL)
        with subprocess.Popen([PTVM, "script", "-i", RECORDING, "--insn-trace"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, preexec_fn=prepare, restore_signals=False) as run:
            run.stdout.readline()
            run.stdout.close()
            equal(run.stderr.read(), b"")


def test_a_file_that_may_not_grow_is_an_error():
    def prepare():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
    with tempfile.TemporaryFile() as out:
        run = subprocess.run([PTVM, "script", "-i", RECORDING, "--insn-trace"], stdout=out,
                             stderr=subprocess.PIPE, preexec_fn=prepare, check=False)
    equal((run.returncode, run.stderr), (1, b"ptvm script: cannot write output: File too large\n"))
    with subprocess.Popen(["cat", RECORDING / "data"], stdout=subprocess.PIPE) as cat:
        run = ptvm("script", "-i", "-", stdin=cat.stdout, preexec_fn=prepare)
    equal((run.returncode, run.stderr), (1, "ptvm script: -: cannot keep what comes from it: File too large\n"))


def with_ssh(where, script):
    """An environment where ssh is this script."""
    ssh = pathlib.Path(where) / "ssh"
    ssh.write_text(f"#!/bin/sh\n{script}\n")
    ssh.chmod(0o755)
    return {**os.environ, "PATH": f"{where}:{os.environ['PATH']}"}


def test_how_a_child_ends_is_known_whatever_our_parent_ignores():
    with tempfile.TemporaryDirectory() as where:
        run = ptvm("guest", "--via", "ssh=vm", "-o", f"{where}/copy", env=with_ssh(where, "exit 255"),
                   preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    equal((run.returncode, run.stderr), (1, "ptvm guest: /proc/modules: ssh vm failed (status 255)\n"))


def test_who_interrupts_a_way_that_fails_wants_no_other():
    with tempfile.TemporaryDirectory() as where:
        asked = pathlib.Path(where) / "asked"
        run = ptvm("guest", "--via", "ssh=one,ssh=two", "-o", f"{where}/copy",
                   env=with_ssh(where, f"echo $3 >>{asked}; kill -INT $PPID; exit 1"))
        equal((run.returncode, asked.read_text()), (-signal.SIGINT, "one\n"))
        equal(sorted(os.listdir(where)), ["asked", "ssh"])


def test_a_full_disk_is_a_failure():
    if not os.path.exists("/dev/full"):
        raise tap.Skip("no /dev/full")
    with open("/dev/full", "wb") as full:
        for args, who in ((["--help"], "ptvm"), (["script", "--help"], "ptvm script"),
                          (["script", "-i", RECORDING], "ptvm script"), (["script", "-i", RECORDING, "-D"], "ptvm script")):
            run = subprocess.run([PTVM, *args], stdout=full, stderr=subprocess.PIPE, check=False, text=True)
            equal((run.returncode, run.stderr), (1, f"{who}: cannot write output: No space left on device\n"))


def test_no_file_takes_the_place_of_output_that_is_closed():
    with subprocess.Popen([PTVM, "correlate", "-i", "-", "--dry-run"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          preexec_fn=lambda: os.close(1)) as run:
        run.stdin.write((RECORDING / "data").read_bytes() + bytes(1 << 20))  # more than a pipe holds: it reads by now
        run.stdin.flush()
        equal(os.readlink(f"/proc/{run.pid}/fd/1"), "/dev/null")
    run = subprocess.run([PTVM, "--help"], stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1), check=False)
    equal((run.returncode, run.stderr), (1, b"ptvm: cannot write output: Bad file descriptor\n"))


def test_a_terminal_gets_a_pager():
    args = ["script", "-i", RECORDING, "--itrace=i1i", "-F", "ip", "--max-lines", "2"]
    status, plain = on_terminal(args, PTVM_PAGER="cat")
    equal((status, plain.count("\n")), (0, 2))
    status, paged = on_terminal(args, PTVM_PAGER="sed s/^/paged:/")
    equal((status, paged.count("paged:")), (0, 2))
    status, unpaged = on_terminal([*args, "--no-pager"], PTVM_PAGER="sed s/^/paged:/")
    equal((status, unpaged), (0, plain))
    status, missing = on_terminal(args, PTVM_PAGER="/nonexistent/pager 2>/dev/null")
    equal((status, "".join(missing.splitlines()[-2:])), (0, "".join(plain.splitlines())))


def test_code_that_nobody_has_can_be_named():
    notes = ptvm("script", "-i", RECORDING / "data", "--itrace=e").stderr.splitlines()[1:]
    equal(notes, ["ptvm script: [kernel.kallsyms]: no copy of its code: name --kallsyms, with kcore beside it, "
                  "or -k; perf buildid-cache --kcore /proc/kcore keeps that which runs",
                  "ptvm script: [guest.kernel.kallsyms]: no copy of its code: name --guestkallsyms, with kcore beside "
                  "it, or --guestvmlinux", f"ptvm script: {RECORDING}/data: nothing could be decoded"])
    run = ptvm("script", "-i", RECORDING / "data", "--itrace=e", "--kallsyms", RECORDING / "kcore_dir/kallsyms",
               "--guestkallsyms", GUEST / "kallsyms", "--guestmodules", GUEST / "modules")
    equal((run.returncode, run.stdout, run.stderr), (0, "", ""))


def test_code_of_one_of_several_guests_has_its_place():
    with tempfile.TemporaryDirectory() as place:
        copy, mounted = pathlib.Path(place) / "recording", pathlib.Path(place) / "106/proc"
        shutil.copytree(RECORDING, copy)
        (copy / "kcore_dir__106/kcore").unlink()
        note = ("ptvm script: [guest.kernel.kallsyms.106]: no copy of its code: put its kallsyms and kcore into "
                "kcore_dir__106 of the recording, or into 106/proc below --guestmount")
        for options in ([], ["--guestkallsyms", GUEST / "kallsyms"]):
            notes = ptvm("script", "-i", copy, "--itrace=e", *options).stderr.splitlines()
            equal((options, notes.count(note)), (options, 1))
        shutil.rmtree(copy / "kcore_dir__106")
        shutil.copytree(GUEST, mounted)
        run = ptvm("script", "-i", copy, "--itrace=e", "--guestmount", place)
        equal((run.returncode, run.stdout, run.stderr), (0, "", ""))


def test_errors_are_red_where_that_is_wanted():
    args = ["script", "-i", RECORDING / "data", "--itrace=e", "--no-pager"]
    for red, env in ((True, {"NO_COLOR": "", "TERM": "xterm"}), (False, {"NO_COLOR": "1", "TERM": "xterm"}),
                     (False, {"NO_COLOR": "", "TERM": "dumb"})):
        equal((env, "\x1b[" in on_terminal(args, **env)[1]), (env, red))


def test_what_was_missing_is_said_behind_the_pager():
    out = on_terminal(["script", "-i", RECORDING / "data"], PTVM_PAGER="sed '$a the pager ends'")[1].splitlines()
    notes = [at for at, line in enumerate(out) if line.startswith("ptvm script: ")]
    assert notes and min(notes) > out.index("the pager ends"), out[-5:]


def options_of_help(verb):
    """Letters and long names, as `ptvm VERB --help` lists them."""
    rows = re.findall(r"^  (?:(-\w)(?:, )?|    )(?:--(\[no-\])?([\w.-]+))?", ptvm(verb, "--help").stdout, re.M)
    return {name for letter, no, long in rows
            for name in (letter, long and "--" + long, no and "--no-" + long) if name}


def options_of_manual(verb):
    text = (PROJECT / f"docs/man/ptvm-{verb}.1").read_text()
    items = [line for line in text.splitlines() if line.startswith(".It Fl ")]
    return {"-" + name for line in items for name in re.findall(r"\bFl (-?[\w.-]+)", line)}


def test_manual_help_and_completion_have_the_same_options():
    verbs = [line.split("\t")[0] for line in ptvm("--complete").stdout.splitlines()]
    verbs = [verb for verb in verbs if verb != "help" and not verb.startswith("-")]
    equal(sorted(path.stem for path in (PROJECT / "docs/man").glob("ptvm-*.1")), sorted("ptvm-" + v for v in verbs))
    for verb in verbs:
        shown = options_of_help(verb)
        equal((verb, shown - {"-h", "--help"}), (verb, options_of_manual(verb)))
        words = {line.split("\t")[0].rstrip("=") for line in ptvm(verb, "--complete").stdout.splitlines()}
        equal((verb, words), (verb, {name for name in shown if name.startswith("--")}))


def test_architecture_names_files_that_are_there():
    words = set(re.findall(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b", (PROJECT / "docs/architecture.md").read_text()))
    files = {path.stem for path in PROJECT.glob("*/**/*.[ch]")} | {path.stem for path in PROJECT.glob("tests/*.py")}
    others = {"kcore_dir", "ptvm_err", "ptvm_error"}
    equal(sorted(word for word in words - others if not any(file.startswith(word) for file in files)), [])


def test_documents_show_what_is_printed():
    lines = set(ptvm("script", "-i", RECORDING, "-C", "1", "--insn-trace", "-F", "+nr,-comm").stdout.splitlines())
    for name in ("README.md", "docs/howto-trace-a-guest.md"):
        shown = re.findall(r"^    ( +\d+ \[\d+\] .*)$", (PROJECT / name).read_text(), re.M)
        assert len(shown) >= 4, name
        equal((name, [line for line in shown if line not in lines]), (name, []))


def test_the_recording_is_answered_as_by_perf_when_it_was_made():
    golden = json.loads((PROJECT / "tests/golden/vm-small.json").read_text())
    command = [PTVM, "script", "-i", RECORDING]
    wrong = [name for name, args, keep in questions.asked([0, 1])
             if questions.digest(questions.lines([*command, *args], keep)) != golden[name]]
    equal(wrong, [])


def test_the_header_is_what_the_recording_says_of_itself():
    run = ptvm("script", "-i", RECORDING, "--header-only")
    lines = run.stdout.splitlines()
    equal((run.returncode, run.stderr, lines[0]), (0, "", "# ========"))
    for line in ("# os release : 6.1.0-56-amd64", "# cpuid : GenuineIntel,6,85,4", "# nrcpus online : 2",
                 "# contains AUX area data (e.g. instruction trace)",
                 "# cpu pmu capabilities: branches=32, max_precise=0, pmu_name=skylake"):
        assert line in lines, line
    caps = [line for line in lines if line.startswith("# intel_pt pmu capabilities: topa_multiple_entries=1, psb_cyc=1, ")]
    assert len(caps) == 1 and caps[0].endswith(", tnt_disable=0"), caps
    both = ptvm("script", "-i", RECORDING, "--header", "--itrace=p").stdout
    equal(both, run.stdout + ptvm("script", "-i", RECORDING, "--itrace=p").stdout)
    equal(ptvm("script", "-i", RECORDING, "--header", "-D", "--max-lines=1").stdout[:len(run.stdout)], run.stdout)


def test_the_first_line_alone_is_a_success():
    run = ptvm("script", "-i", RECORDING, "--insn-trace", "--max-lines", "1")
    equal((run.returncode, run.stdout.count("\n"), run.stderr), (0, 1, ""))


def test_the_installed_perf_agrees():
    tap.need("perf")
    guest = ["--guestkallsyms", GUEST / "kallsyms", "--guestmodules", GUEST / "modules"]
    for name, args, keep in questions.asked([0, 1]):
        if not name.startswith(("instructions", "branches", "packets")):
            continue
        theirs = questions.lines(["perf", "script", "-i", RECORDING, *guest, *args], keep)
        ours = questions.lines([PTVM, "script", "-i", RECORDING, *guest, *args], keep)
        for at, (found, expected) in enumerate(zip(ours, theirs)):
            assert found == expected, f"{name}, line {at}: found {found!r}, perf has {expected!r}"
        equal((name, len(ours)), (name, len(theirs)))


ITEMS = ["cpu", "intel_pt", "intel_pt caps", "VMX_MISC[14]", "kvm_intel", "pt_mode", "capabilities",
         "perf_event_paranoid", "locked memory", "kcore", "kptr_restrict", "lockdown", "debugfs", "tracefs",
         "disk space", "libvirt"]


def test_check_tells_every_item_of_the_host():
    run = ptvm("check", "-c", "test:///default")
    words = run.stdout.splitlines()
    equal([line[9:29].rstrip() for line in words[:-1]], ITEMS)
    blocks = sum(line.startswith("blocks") for line in words)
    equal((run.returncode, run.stderr), (1 if blocks else 0, ""))
    assert words[-1].startswith("Recording cannot work" if blocks else "Recording can work"), words[-1]


def test_check_says_the_same_in_json():
    run = ptvm("check", "-c", "test:///default", "--json")
    found = json.loads(run.stdout)
    equal([item["item"] for item in found["items"]], ITEMS)
    equal(found["can_record"], all(item["verdict"] != "blocks" for item in found["items"]))
    equal(run.returncode, 0 if found["can_record"] else 1)
    equal([item for item in found["items"] if (item["verdict"] == "ok") != (item["remedy"] is None)], [])


def test_check_finds_a_domain_of_libvirt():
    run = ptvm("check", "-c", "test:///default", "--domain", "test")
    if "built without libvirt" in run.stdout:
        raise tap.Skip("built without libvirt")
    assert "\nok       domain               test, id 1, " in run.stdout, run.stdout
    assert "\nblocks   process  " in run.stdout, run.stdout
    equal(run.returncode, 1)


def test_check_names_what_is_not_there():
    run = ptvm("check", "-c", "test:///default", "--domain", "no-such-domain")
    assert "\nblocks   domain               'no-such-domain' is not known" in run.stdout, run.stdout
    run = ptvm("check", "-c", "none:///", "--pid", str(os.getpid()))
    assert f"process {os.getpid()} runs no virtual machine" in run.stdout, run.stdout
    assert "\nwarning  libvirt  " in run.stdout, run.stdout


def test_check_refuses_what_cannot_be_meant():
    refused(["check", "--domain"], "ptvm check: option needs an argument: --domain")
    refused(["check", "--domain=a", "-p1"], "ptvm check: --domain and -p both name the guest")
    for pid in ("0", "x", "1x", "2147483648", "4294967296"):
        refused(["check", "-p", pid], f"ptvm check: -p takes the number of a process, not '{pid}'")
        refused(["guest", "-p", pid], f"ptvm guest: -p takes the number of a process, not '{pid}'")
    refused(["check", "vm"], "ptvm check: unexpected argument: vm; see 'ptvm check --help'")


def main():
    tap.run(tap.tests_of(globals()))


if __name__ == "__main__":
    main()
