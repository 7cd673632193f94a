#!/usr/bin/env python3
"""bpf.py PTVM: a trace through BPF programs, whose code is in the header of the recording; prints TAP.

The trace of the sample recording is replaced by one of the host that enters a program, which calls its second function."""
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import tap
from perf_file import AUXTRACE, PerfFile

PROJECT = pathlib.Path(__file__).resolve().parents[2]
RECORDING = PROJECT / "examples/vm-small"
PTVM = sys.argv[1]
KSYMBOL, BPF_EVENT, AUX, FINISHED_INIT, BPF_PROG_INFO = 17, 18, 11, 82, 25
ID, TAG = 123, bytes(range(8))
MAIN, SECOND = 0xffffffffc0500040, 0xffffffffc0500800
# push %rbp; mov %rsp,%rbp; call SECOND; mov $5,%eax; pop %rbp; ret
MAIN_CODE = (bytes.fromhex("554889e5e8") + struct.pack("<i", SECOND - MAIN - 9) + bytes.fromhex("b8050000005dc3"))
SECOND_CODE = bytes.fromhex("31c04883c003c3")  # xor %eax,%eax; add $3,%rax; ret
EXPECTED = [MAIN, MAIN + 1, MAIN + 4, SECOND, SECOND + 2, SECOND + 6, MAIN + 9, MAIN + 14, MAIN + 15]


def program_info():
    """HEADER_BPF_PROG_INFO with the program: its code, and the addresses and lengths of its functions."""
    code = MAIN_CODE + SECOND_CODE
    data = code.ljust((len(code) + 7) // 8 * 8, b"\0")
    addresses = len(data)
    data += struct.pack("<QQ", MAIN, SECOND) + struct.pack("<II", len(MAIN_CODE), len(SECOND_CODE))
    info = bytearray(232)
    struct.pack_into("<II8sII", info, 0, 1, ID, TAG, len(code), 0)
    struct.pack_into("<IIQQ", info, 104, 2, 2, addresses, addresses + 16)
    return struct.pack("<IIIQ", 1, len(info), len(data), 1 << 0 | 1 << 3 | 1 << 4) + info + data


def record(kind, body, trailer):
    body = body.ljust((len(body) + 7) // 8 * 8, b"\0") + trailer
    return kind, struct.pack("<IHH", kind, 1, 8 + len(body)) + body


def packets(tsc):
    """Comes into the program; its returns and what is behind them have a TIP each. Time goes on once."""
    ip = [struct.pack("<Q", address) for address in (MAIN, MAIN + 9, MAIN)]
    once = b"\xcd" + ip[1], b"\xcd" + ip[2]  # both functions return: to the caller, and there it begins again
    times = [b"\x19" + struct.pack("<Q", ticks)[:7] for ticks in (tsc, tsc + 100000)]
    return (b"\x02\x82" * 8 + times[0] + b"\x99\x01" + b"\x02\x23" + b"\xd1" + ip[0] + times[1].join(once)
            + 2 * b"".join(once) + b"\xcd" + ip[1] + b"\x01")


def make(where):
    shutil.copytree(RECORDING, where)
    file = PerfFile(where / "data")
    aux = next(data for kind, data in file.records if kind == AUXTRACE)
    trace = packets(struct.unpack_from("<Q", aux, 24)[0] - 1000000)
    trace = trace.ljust((len(trace) + 7) // 8 * 8, b"\0")
    head = struct.pack("<IHH", AUXTRACE, 0, 48) + struct.pack("<QQQIIII", len(trace), 0, *struct.unpack_from("<Q", aux, 24),
                                                             0, 0xffffffff, 0, 0)
    file.records = [(kind, data) for kind, data in file.records if kind not in (AUXTRACE, AUX)]
    start = next(number for number, (kind, _) in enumerate(file.records) if kind == FINISHED_INIT)
    file.records[start:start] = [
        record(KSYMBOL, struct.pack("<QIHH", MAIN, len(MAIN_CODE), 1, 0) + b"bpf_prog_main\0", bytes(32)),
        record(KSYMBOL, struct.pack("<QIHH", SECOND, len(SECOND_CODE), 1, 0) + b"bpf_prog_second\0", bytes(32)),
        record(BPF_EVENT, struct.pack("<HHI8s", 1, 0, ID, TAG), bytes(32))]
    file.records.append((AUXTRACE, head + trace))
    file.features[BPF_PROG_INFO] = program_info()
    file.write(where / "data")
    return where


def output(program, recording, args):
    run = subprocess.run([program, "script", "-i", recording, *args], capture_output=True, text=True, check=True, timeout=60)
    return run.stdout.splitlines()


def insns(program, recording, args=("-F", "ip,sym,symoff,dso,insn")):
    return [line.split() for line in output(program, recording, ["--itrace=i1ie", *args])]


def test_the_code_of_programs_is_followed(recording):
    lines = insns(PTVM, recording)
    assert [int(line[0], 16) for line in lines] == EXPECTED * 4, lines
    assert lines[0][1:] == ["bpf_prog_main+0x0", "(bpf_prog_main)", "insn:", "55"], lines[0]
    assert lines[4][1:] == ["bpf_prog_second+0x2", "(bpf_prog_second)", "insn:", "48", "83", "c0", "03"], lines[4]


def test_without_the_code_there_is_a_gap(recording):
    file = PerfFile(recording / "data")
    del file.features[BPF_PROG_INFO]
    file.write(recording / "bare")
    run = subprocess.run([PTVM, "script", "-i", recording / "bare", "--itrace=e"], capture_output=True, text=True,
                         check=False, timeout=60)
    assert f"ip {MAIN:#x} code 5: Failed to get instruction" in run.stdout, run.stdout


def test_a_program_that_was_unloaded_is_no_code(recording):
    file = PerfFile(recording / "data")
    end = max(struct.unpack_from("<Q", data, len(data) - 24)[0] for kind, data in file.records if kind in (14, 15))
    for name, time, followed in (("before", 1000, False), ("after", end + 10 ** 9, True)):
        unload = record(BPF_EVENT, struct.pack("<HHI8s", 2, 0, ID, TAG), struct.pack("<IIQIIQ", 0, 0, time, 0, 0, 0))
        file.records.append(unload)
        file.write(recording / name)
        file.records.pop()
        run = subprocess.run([PTVM, "script", "-i", recording / name, "--itrace=i1i", "-F", "ip"], capture_output=True,
                             text=True, check=False, timeout=60)
        assert (f"{SECOND:x}" in run.stdout) == followed, f"{name}: {run.stdout}"


def test_a_name_is_that_of_the_time(recording):
    """In all lines, while the code stays as it is: the name goes, and there is another one."""
    file = PerfFile(recording / "data")
    times = [line[0].rstrip(":") for line in insns(PTVM, recording, ["-F", "time", "--ns"])]
    first, last = (int(time.replace(".", "")) for time in (times[0], times[-1]))
    trailer = struct.pack("<IIQIIQ", 0, 0, (first + last) // 2, 0, 0, 0)
    for name, flags in ((b"bpf_prog_second", 1), (b"another", 0)):
        file.records.append(record(KSYMBOL, struct.pack("<QIHH", SECOND, len(SECOND_CODE), 1, flags) + name + b"\0", trailer))
    file.write(recording / "renamed")
    before, after, now = "bpf_prog_second", "another", None
    for args in (["--itrace=i1i"], ["--itrace=b"], ["--itrace=i1ig"], ["--itrace=cr"], ["--call-trace"]):
        lines = output(PTVM, recording / "renamed", [*args, "-F", "+time", "--ns"])
        names = {times[0]: set(), times[-1]: set()}
        for line in lines:
            now = next((time for time in names if f" {time}: " in line), None) or now
            names[now] |= {name for name in (before, after) if name in line}
        assert list(names.values()) == [{before}, {after}], (args, names, lines)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tap.run(tap.tests_of(globals()), make(pathlib.Path(folder) / "bpf"))


if __name__ == "__main__":
    main()
