#!/usr/bin/env python3
"""samples.py PTVM: samples of other events beside the trace, byte by byte against the installed perf; prints TAP.

The sample recording gets events, and samples at many of its times."""
import itertools
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import tap
from perf_file import AUXTRACE, CMDLINE, EVENT_DESC, SAMPLE, TRACING_DATA, PerfFile

PROJECT = pathlib.Path(__file__).resolve().parents[2]
RECORDING = PROJECT / "examples/vm-small"
GUEST = RECORDING / "kcore_dir__106"
FILES = ["--guestkallsyms", GUEST / "kallsyms", "--guestmodules", GUEST / "modules"]
PTVM = sys.argv[1]
IP, TID, TIME, CALLCHAIN, CPU, PERIOD, RAW, IDENTIFIER = (1 << bit for bit in (0, 1, 2, 5, 7, 8, 10, 16))
COMMON = IP | TID | TIME | CPU | PERIOD | IDENTIFIER
KERNEL, USER, GUEST_KERNEL = 1, 2, 4
LOST, TEXT_POKE = 2, 20
POINT = 0x234
POKED = 0xffffffffa706889f  # event_sched_in.part.0+0x14f
PAGE = b"""\
	field: u64 timestamp;	offset:0;	size:8;	signed:0;
	field: local_t commit;	offset:8;	size:8;	signed:1;
	field: int overwrite;	offset:8;	size:1;	signed:1;
	field: char data;	offset:16;	size:4080;	signed:1;
"""
FORMAT = f"""name: step
ID: {POINT}
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:unsigned int count;	offset:8;	size:4;	signed:0;
	field:unsigned int kind;	offset:12;	size:4;	signed:0;
	field:void * caller;	offset:16;	size:8;	signed:0;
	field:__data_loc char[] text;	offset:24;	size:4;	signed:0;

print fmt: "count %u kind=%s from %pS: %s", REC->count, __print_symbolic(REC->kind, {{ 0, "NONE" }}, {{ 1, "ONE" }}), """ \
    """REC->caller, __get_str(text)
"""


def section(text, long_size=8):
    """HEADER_TRACING_DATA with one tracepoint, test:step."""
    def sized(kind, data):
        return struct.pack(kind, len(data)) + data

    return (b"\x17\x08Dtracing0.6\0" + bytes([0, long_size]) + struct.pack("<I", 4096)
            + b"header_page\0" + sized("<Q", PAGE) + b"header_event\0" + sized("<Q", b"\n") + struct.pack("<I", 0)
            + struct.pack("<I", 1) + b"test\0" + struct.pack("<I", 1) + sized("<Q", text.encode())
            + sized("<I", b"") + sized("<I", b'0xffffffff81234567 : "a string"\n') + sized("<Q", b""))


def raw(count, caller):
    text = b"step %d\0" % count
    fields = struct.pack("<HBBiIIQI", POINT, 0, 0, 17, count, count % 3, caller, 28 | len(text) << 16) + text
    fields = fields.ljust((len(fields) + 4 + 7) // 8 * 8 - 4, b"\0")
    return struct.pack("<I", len(fields)) + fields


class Sampled:
    """The sample recording with events and samples that it did not have."""

    def __init__(self):
        self.file = PerfFile(RECORDING / "data")
        self.plain = self.file.events[-1][0]
        self.next_id = 1000

    def event(self, name, kind, config, sample_type):
        attr = bytearray(self.plain)
        struct.pack_into("<I", attr, 0, kind)
        struct.pack_into("<QQQ", attr, 8, config, 1000, sample_type)
        self.next_id += 1
        self.file.describe(bytes(attr), self.next_id, name)
        return self.next_id

    def times(self, step):
        """Every so many records of the kernel: thread, time and CPU as one of them has it, some nanoseconds later."""
        switches = [record[-32:] for kind, record in self.file.records if kind in (14, 15)]
        for number, trailer in enumerate(switches[::step]):
            pid, tid, time, cpu = struct.unpack_from("<IIQI", trailer)
            yield number, pid, tid, time + 1500 * (number % 7), cpu

    def sample(self, mode, event, ip, where, rest):
        _, pid, tid, time, cpu = where
        place = b"" if cpu is None else struct.pack("<II", cpu, 0)
        body = struct.pack("<QQIIQ", event, ip, pid, tid, time) + place + struct.pack("<Q", where[0] + 1) + rest
        self.file.records.append((SAMPLE, struct.pack("<IHH", SAMPLE, mode, 8 + len(body)) + body))


def symbols(path, count):
    """Addresses in functions of a kernel."""
    lines = (line.split() for line in path.read_text().splitlines())
    starts = [int(line[0], 16) for line in lines if line[1] in "tT" and len(line) == 3]
    return [start + 5 for start in starts[::len(starts) // count][:count]]


def make(where):
    """Tracepoints with and without strings, cycles of host and guest, a clock with call chains."""
    shutil.copytree(RECORDING, where)
    made = Sampled()
    host, guest = symbols(where / "kcore_dir/kallsyms", 50), symbols(where / "kcore_dir__106/kallsyms", 50)
    point = made.event("test:step", 2, POINT, COMMON | RAW)
    cycles = made.event("cycles", 0, 0, COMMON)
    clock = made.event("cpu-clock", 1, 0, COMMON | CALLCHAIN)
    for place in made.times(3):
        number = place[0]
        made.sample(KERNEL, point, host[number % 50], place, raw(number, host[number * 7 % 50]))
    for place in made.times(5):
        in_guest = place[2] == 113
        ip = (guest if in_guest else host)[place[0] * 3 % 50]
        made.sample(GUEST_KERNEL if in_guest else KERNEL, cycles, ip, place, b"")
    for place in made.times(11):
        chain = [2 ** 64 - 128, *host[:place[0] % 9], 2 ** 64 - 512, 0x7f0012345678]
        if place[0] % 10 == 7:
            chain.append(2 ** 64 - 5)  # no context that there is
        made.sample(KERNEL, clock, host[0], place, struct.pack(f"<Q{len(chain)}Q", len(chain), *chain))
    made.file.features[TRACING_DATA] = section(FORMAT)
    made.file.write(where / "data")
    return where


def make_late(recording, where, cpu=0):
    """Samples of places that were called from elsewhere, taken some time after the trace was there."""
    shutil.copytree(RECORDING, where)
    made = Sampled()
    common = COMMON if cpu is not None else COMMON & ~CPU
    cycles = made.event("cycles", 0, 0, common)
    point = made.event("test:step", 2, POINT, common | RAW)
    chains = subprocess.run([PTVM, "script", "-i", recording, "-C", "0", "--itrace=i100ig", "-F", "pid,tid,time,ip", "--ns"],
                            capture_output=True, text=True, check=True).stdout.split("\n\n")
    for number, chain in enumerate(chain.split("\n") for chain in chains if chain.count("\n")):
        pid, tid, seconds, nanoseconds = map(int, re.fullmatch(r" *(\d+)/(\d+) +(\d+)\.(\d+): *", chain[0]).groups())
        ip = int(chain[min(1 + number % 3, len(chain) - 1)].split()[0], 16)
        place = number, pid, tid, seconds * 10 ** 9 + nanoseconds + 1000, cpu
        if number % 2:
            made.sample(KERNEL, cycles, ip, place, b"")
        else:
            made.sample(KERNEL, point, ip, place, raw(number, ip))
    made.file.features[TRACING_DATA] = section(FORMAT)
    made.file.write(where / "data")
    return where


def output(program, recording, args, **more):
    run = subprocess.run([program, "script", "-i", recording, *FILES, *args], capture_output=True, check=True, timeout=100,
                         **more)
    text = run.stdout.decode().replace("[guest.kernel.kallsyms.106]", "[guest.kernel.kallsyms]")
    return text.splitlines(), run.stderr.decode()


def compare(recording, args):
    ours, theirs = output(PTVM, recording, args)[0], output("perf", recording, args)[0]
    assert len(theirs) > 50, f"{args}: {len(theirs)} lines"
    for at, (found, expected) in enumerate(zip(ours, theirs)):
        assert found == expected, f"{args}: line {at}: found {found!r}, perf has {expected!r}"
    assert len(ours) == len(theirs), f"{args}: {len(ours)} lines, perf has {len(theirs)}"


def test_perf_prints_the_same_without_trace(recording):
    tap.need("perf")
    for args in (["--itrace=e"], ["--itrace=e", "-F", "comm,tid,time,event,ip,sym"], ["--itrace=e", "-F", "trace:"],
                 ["--itrace=e", "-F", "sw:"], ["--itrace=e", "-F", "+flags,-event"], ["--itrace=e", "-C", "1"],
                 ["--itrace=e", "-F", "hw:comm,ip"], ["--no-itrace", "--ns", "--reltime"]):
        compare(recording, args)


def test_perf_prints_the_same_beside_it(recording):
    """Without names and times: of these perf knows less."""
    tap.need("perf")
    for args in (["--itrace=cr", "-F", "-comm,-tid,-time"], ["--itrace=i100i", "-F", "-comm,-tid,-time"],
                 ["--itrace=b", "-F", "ip,sym"]):
        compare(recording, ["-C", "0", *args])
    compare(recording, ["-C", "1", "--itrace=b", "-F", "ip,event,trace"])


def test_perf_prints_the_same_calls_and_branches_that_led_there(recording):
    """Up to a context switch, whose thread perf knows too early."""
    tap.need("perf")
    late = make_late(RECORDING, recording / "late")
    for args in (["--itrace=G"], ["--itrace=G3"], ["--itrace=L8", "-F", "ip,sym,brstack"],
                 ["--itrace=GL", "-F", "comm,tid,cpu,time,event,ip,sym,dso,brstack"], ["--itrace=GL", "-F", "event,trace"]):
        compare(late, ["-C", "0", "--time=,26.86879", *args])
    with_trace = [line for line in output(PTVM, late, ["--itrace=bG"])[0] if "branches:" not in line]
    assert with_trace == output(PTVM, late, ["--itrace=G"])[0]
    with_own = ["-C", "0", "-F", "sw:ip,sym", "-F", "hw:tid", "-F", "trace:"]
    assert output(PTVM, recording, ["--itrace=G", *with_own]) == output(PTVM, recording, ["--itrace=e", *with_own])


def test_samples_without_a_cpu_have_the_trace_of_their_threads(recording):
    tap.need("perf")
    with_cpu, without = make_late(RECORDING, recording / "with"), make_late(RECORDING, recording / "without", None)
    for args in (["--itrace=G", "-F", "tid,time,event,ip,sym"], ["--itrace=GL", "-F", "event,ip,sym,brstack"]):
        known, found = (output(PTVM, where, [*args, "--tid=106"])[0] for where in (with_cpu, without))
        assert found == known and len(found) > 50, next(pair for pair in zip(found, known) if pair[0] != pair[1])
        compare(without, [*args, "--time=,26.86879"])


def test_perf_prints_the_same_of_lost_records(recording):
    tap.need("perf")
    file = PerfFile(RECORDING / "data")
    switches = [data for kind, data in file.records if kind in (14, 15)]
    for number, switch in enumerate(switches[::3]):
        body = struct.pack("<QQ", 38, number) + switch[-32:]
        file.records.append((LOST, struct.pack("<IHH", LOST, 0, 8 + len(body)) + body))
    file.write(recording / "lost")
    compare(recording / "lost", ["--show-lost-events", "--no-itrace"])
    compare(recording / "lost", ["-D"])


def rare_records():
    def text(name):
        return name.ljust((len(name) + 8) // 8 * 8, b"\0")

    addresses = struct.pack("<QHH", POKED, 5, 5) + bytes.fromhex("0f1f440000 e911223344")
    bodies = [(3, struct.pack("<II", 5, 6) + text(b"name")), (4, struct.pack("<IIIIQ", 5, 6, 7, 8, 9)),
              (5, struct.pack("<QQQ", 1, 38, 39)), (6, struct.pack("<QQQ", 1, 38, 39)),
              (7, struct.pack("<IIIIQ", 5, 6, 7, 8, 9)), (13, struct.pack("<Q", 3)),
              (16, struct.pack("<IIQ14Q", 1, 2, 7, *range(14))), (16, struct.pack("<IIQ18Q", 1, 2, 9, *range(18))),
              (17, struct.pack("<QIHH", 0xffffffffc0001000, 64, 1, 0) + text(b"bpf_prog_1")),
              (18, struct.pack("<HHI", 1, 0, 7) + bytes(8)), (19, struct.pack("<Q", 77) + text(b"/sys/fs/cgroup/x")),
              (21, struct.pack("<Q", 9)), (TEXT_POKE, addresses.ljust(24, b"\0"))]
    file = PerfFile(RECORDING / "data")
    trailers = [data[-32:] for kind, data in file.records if kind in (14, 15)]
    for (kind, body), trailer in zip(bodies, trailers):
        file.records.append((kind, struct.pack("<IHH", kind, 0, 8 + len(body) + len(trailer)) + body + trailer))
    return file


def test_perf_dumps_the_same_of_rare_records(recording):
    tap.need("perf")
    rare_records().write(recording / "rare")
    ours, theirs = (output(program, recording / "rare", ["-D"])[0] for program in (PTVM, "perf"))
    known = [re.sub(r"(TEXT_POKE \w+ )\S* old", r"\1 old", line) for line in theirs]  # perf may have a symbol
    assert ours == known, next(pair for pair in zip(ours, known) if pair[0] != pair[1])


def test_perf_dumps_the_same_of_records_alone(recording):
    tap.need("perf")
    ours, theirs = (output(program, RECORDING, ["-D", "--no-itrace"])[0] for program in (PTVM, "perf"))
    assert ours == theirs and len(ours) > 1000, next(pair for pair in zip(ours, theirs) if pair[0] != pair[1])


def test_perf_shows_the_same_of_rare_records(recording):
    tap.need("perf")
    file = rare_records()
    file.records = [record for record in file.records if record[0] not in (TEXT_POKE, 21)]  # perf gives up at these
    file.write(recording / "shown")
    shown = ["--show-namespace-events", "--show-cgroup-events", "--show-bpf-events", "--show-text-poke-events"]
    for args in [[option] for option in shown] + [shown]:
        ours, theirs = (output(program, recording / "shown", ["--no-itrace", *args])[0] for program in (PTVM, "perf"))
        assert ours and ours == theirs, (args, ours, theirs)


def test_patched_code_is_shown(recording):
    poked = recording / "poked"
    shutil.copytree(RECORDING, poked)
    rare_records().write(poked / "data")
    words = f"TEXT_POKE {POKED:x} event_sched_in.part.0+0x14f old len 5 new len 5"
    for args in (["--no-itrace", "--show-text-poke-events"], ["-D"]):
        ours = output(PTVM, poked, args)[0]
        assert sum(words in line for line in ours) == 1, (args, [line for line in ours if "TEXT_POKE" in line])
    unnamed = output(PTVM, poked / "data", ["-D"])[0]
    assert sum(f"TEXT_POKE {POKED:x}  old len" in line for line in unnamed) == 1, "without the kernel's symbols"


def test_perf_names_the_same_patched_code(recording):
    tap.need("perf")
    named = recording / "named"
    shutil.copytree(RECORDING, named)
    rare_records().write(named / "data")
    ours, theirs = ([line for line in subprocess.run([program, "script", "-i", named, "-D"], capture_output=True, text=True,
                                                     check=True, timeout=100).stdout.splitlines() if "TEXT_POKE" in line]
                    for program in (PTVM, "perf"))  # without files of the guest, where perf looks up the host's code, too
    assert ours == theirs and len(ours) == 1, (ours, theirs)


def test_a_format_that_kills_the_library_leaves_bytes(recording):
    file = PerfFile(recording / "data")
    file.features[TRACING_DATA] = section(FORMAT.split("print fmt")[0] + 'print fmt: "%d", 1 / REC->kind\n')
    file.write(recording / "killing")
    lines, complaint = output(PTVM, recording / "killing", ["--itrace=e", "-F", "trace:event,trace", "-F", "sw:", "-F", "hw:ip"])
    points = [line for line in lines if "test:step" in line]
    assert len(points) > 50 and "test:step: raw: 34 02" in points[0], points[:3]
    assert "libtraceevent failed: samples of tracepoints from there on are shown as bytes" in complaint, complaint


def test_without_formats_samples_are_bytes(recording):
    file = PerfFile(recording / "data")
    del file.features[TRACING_DATA]
    file.write(recording / "bare")
    lines, complaint = output(PTVM, recording / "bare", ["--itrace=e", "-F", "trace:event,trace"])
    assert any("test:step: raw: 34 02" in line for line in lines), lines[:3]
    assert complaint.count("the recording has no formats of tracepoints") == 1, complaint


def test_names_cannot_move_cursors(recording):
    """Of threads, events, files and strings of tracepoints; a thread's has the byte that stands for a time."""
    file = PerfFile(recording / "data")
    for plain, evil in ((b"CPU 0/KVM", b"CPU\x1f\x1b/KVM"), (b"kvm-intel.ko", b"kvm\nint\xc2\x9b.ko")):
        file.records = [(kind, data.replace(plain, evil)) for kind, data in file.records]
    file.records = [(kind, data.replace(b"step 1\0", b"st\x1bp\n1\0")) for kind, data in file.records]
    file.features[EVENT_DESC] = file.features[EVENT_DESC].replace(b"cycles", b"cyc\x07es")
    file.features[CMDLINE] = file.features[CMDLINE].replace(b"perf", b"pe\rf")
    file.write(recording / "evil")
    options = (["--reltime", "--itrace=cr"], ["--show-task-events", "--show-mmap-events", "--itrace=e"], ["-D"], ["--header-only"],
               ["--comms", "CPU\x1f\x1b/KVM", "--itrace=i1000ig"])
    texts = [output(PTVM, recording / "evil", args)[0] for args in options]
    for args, lines in zip(options, texts):
        found = [line for line in lines if re.search("[\0-\x08\x0b-\x1f\x7f-\x9f]", line)]
        assert not found, (args, found[:3])
    assert any(re.match(r" *CPU\?\?/KVM +113 \[001\] +0\.\d{6}: ", line) for line in texts[0]), texts[0][:3]
    assert any("PERF_RECORD_COMM: CPU??/KVM:" in line for line in texts[1]) and any("kvm?int??.ko" in line for line in texts[1])
    assert any("PERF_RECORD_COMM: CPU??/KVM:" in line for line in texts[2])
    assert any("# cmdline : " in line and "pe?f" in line for line in texts[3]), texts[3]
    assert texts[4], "names are selected as they are"


def test_names_of_events_have_what_the_trace_leaves_out(recording):
    """kernel, user, hv, host and guest; the first event is the trace."""
    file = PerfFile(RECORDING / "data")
    (attr, ids), path = file.events[0], recording / "leaving-out"
    (flags,) = struct.unpack_from("<Q", attr, 40)
    for bits in itertools.product((0, 1), repeat=5):
        left_out = sum(bit << at for bit, at in zip(bits, (4, 5, 6, 19, 20)))
        file.events[0] = attr[:40] + struct.pack("<Q", flags & ~0x180070 | left_out) + attr[48:], ids
        file.write(path)
        args = ["-C", "1", "--itrace=b", "-F", "event"]
        ours, theirs = (output(program, path, args)[0][:1] for program in (PTVM, "perf"))
        assert ours == theirs and ours, (bits, ours, theirs)


def test_selections_are_for_samples_too(recording):
    plain = output(PTVM, recording, ["--itrace=e", "-F", "nr,tid,time,event", "--guest-only"])[0]
    guest = [line for line in plain if "cycles" in line]
    assert guest == plain and all(line.split()[:2] == ["113", "guest"] for line in guest) and guest, plain[:3]
    assert not any(" guest " in line for line in output(PTVM, recording, ["--itrace=e", "-F", "nr,time", "--host-only"])[0])
    times = output(PTVM, recording, ["--itrace=e", "-F", "time", "--time", "25.0,26.5"])[0]
    assert times and all(25 <= float(line.rstrip(": ")) <= 26.5 for line in times if line), times[:3]
    vcpu = output(PTVM, recording, ["--itrace=e", "-F", "tid,event", "--vcpu", "0"])[0]
    assert vcpu and all(line.split()[0] == "113" for line in vcpu if line and line[0] != "\t"), vcpu[:3]


def test_perf_prints_the_same_where_there_is_no_trace(recording):
    tap.need("perf")
    file = PerfFile(recording / "data")
    file.records = [(kind, data) for kind, data in file.records if kind not in (70, AUXTRACE)]
    file.write(recording / "untraced")
    records = ["--show-task-events", "--show-switch-events", "--show-mmap-events"]
    compare(recording / "untraced", ["-F", "comm,tid,cpu,time,event"])
    for fields in ("comm,tid,cpu,time,event", "comm,pid,time,ip", "event,ip"):  # perf does not sort what is far out of order
        ours, theirs = (output(program, recording / "untraced", ["-F", fields, *records])[0] for program in (PTVM, "perf"))
        assert sorted(ours) == sorted(theirs), next(pair for pair in zip(sorted(ours), sorted(theirs)) if pair[0] != pair[1])


def main():
    with tempfile.TemporaryDirectory() as folder:
        tap.run(tap.tests_of(globals()), make(pathlib.Path(folder) / "sampled"))


if __name__ == "__main__":
    main()
