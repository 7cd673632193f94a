#!/usr/bin/env python3
"""cut_recording.py RECORDING OUT --keep QUEUE:FROM:TO ... [--guest PID:DIR ...]

Make a small recording of a large one, for tests and examples: a stretch of the trace of each queue (byte positions in
its stream, moved on to the next PSB), all other records, and of the kernels' code only the functions that ran. The
result is a directory that perf reads like the original:

    OUT/data                 the records
    OUT/kcore_dir/           kcore, kallsyms and modules of the host
    OUT/kcore_dir__PID/      those of each guest

`perf script` of the uncut code says what ran, so perf must be installed."""
import argparse
import bisect
import pathlib
import re
import struct
import subprocess
import tempfile

PAGE = 4096
FUNCTION_MAX = 16 * PAGE  # a symbol further away is not the name of the function
ELF_HEADER, PROGRAM_HEADER, PT_LOAD = 64, 56, 1
PSB = b"\x02\x82" * 8
FEATURE_AUXTRACE = 18
RECORD_AUXTRACE = 71
# perf looks these up to find where the kernel lies and where it switches threads.
LANDMARKS = {"_text", "_stext", "_etext", "__switch_to", "__perf_event_task_sched_out"}


class Stream:
    """The trace bytes of one queue, over all its AUXTRACE records."""

    def __init__(self):
        self.pieces = []  # (position of the record in the file, its trace bytes)

    def bounds(self, first, last):
        """The stretch from the PSB at or after `first` to the one at or after `last`."""
        whole = b"".join(piece for _, piece in self.pieces)
        start = whole.find(PSB, first)
        end = whole.find(PSB, last)
        return (len(whole) if start < 0 else start), (len(whole) if end < 0 else end)


def read_records(data, start, end):
    """Each record as (position, type, bytes, trace bytes)."""
    while start < end:
        kind, _, size = struct.unpack_from("<IHH", data, start)
        trace = b""
        if kind == RECORD_AUXTRACE:
            length = struct.unpack_from("<Q", data, start + 8)[0]
            trace = data[start + size:start + size + length]
        yield start, kind, data[start:start + size], trace
        start += size + len(trace)


def cut_records(data, keep):
    """The data section of the small recording, and where in it the AUXTRACE records are."""
    offset, size = struct.unpack_from("<QQ", data, 40)
    records = list(read_records(data, offset, offset + size))
    streams = {}
    for position, kind, head, trace in records:
        if kind == RECORD_AUXTRACE:
            queue = struct.unpack_from("<I", head, 32)[0]
            streams.setdefault(queue, Stream()).pieces.append((position, trace))
    bounds = {q: s.bounds(*keep[q]) for q, s in streams.items() if q in keep}
    out, index, passed = bytearray(), [], dict.fromkeys(streams, 0)
    for position, kind, head, trace in records:
        if kind == RECORD_AUXTRACE:
            queue = struct.unpack_from("<I", head, 32)[0]
            at = passed[queue]
            passed[queue] += len(trace)
            first, last = bounds.get(queue, (0, 0))
            first, last = max(first - at, 0), min(last - at, len(trace))
            if first >= last:
                continue
            trace = trace[first:last] + bytes(-(last - first) % 8)
            head = bytearray(head)
            aux_offset = struct.unpack_from("<Q", head, 16)[0]
            struct.pack_into("<QQ", head, 8, len(trace), aux_offset + first)
            index.append((offset + len(out), len(head)))
        out += head + trace
    return out, index


def cut_data(source, target, keep):
    """Write the small perf.data file."""
    data = source.read_bytes()
    offset, size = struct.unpack_from("<QQ", data, 40)
    features = [bit for bit in range(256) if data[72 + bit // 8] >> bit % 8 & 1]
    records, index = cut_records(data, keep)
    out = bytearray(data[:offset]) + records
    struct.pack_into("<Q", out, 48, len(records))
    table = len(out)
    out += bytes(16 * len(features))
    for i, bit in enumerate(features):
        at, length = struct.unpack_from("<QQ", data, offset + size + 16 * i)
        payload = data[at:at + length]
        if bit == FEATURE_AUXTRACE:
            payload = struct.pack("<Q", len(index)) + b"".join(struct.pack("<QQ", *entry) for entry in index)
        struct.pack_into("<QQ", out, table + 16 * i, len(out), len(payload))
        out += payload
    target.write_bytes(out)


def perf_script(recording, guests, *what):
    args = ["perf", "script", "-i", recording, *what]
    if guests:
        args += ["--guestkallsyms", guests[0] / "kallsyms", "--guestmodules", guests[0] / "modules"]
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def executed(recording, guests):
    """Addresses of the bytes that ran, and of those branched from and to, as perf decodes them."""
    ran = set()
    text = perf_script(recording, guests, "--itrace=i1i", "-F", "ip,insnlen")
    for ip, length in re.findall(r"^\s*([0-9a-f]+)\s.*ilen: (\d+)", text, re.M):
        ran.add(int(ip, 16))
        ran.add(int(ip, 16) + int(length) - 1)
    text = perf_script(recording, guests, "--itrace=b", "-F", "ip,addr")
    ran.update(int(word, 16) for word in re.findall(r"\b[0-9a-f]{8,16}\b", text))
    return ran


class Symbols:
    """kallsyms: lines, and the addresses where code or data begins, in order."""

    def __init__(self, path):
        self.lines = path.read_text().splitlines()
        self.starts = sorted({int(line.split()[0], 16) for line in self.lines if line.split()[1] in "TtWwDdBb"})

    def around(self, address):
        """Start of the symbol that holds the address, and of the next."""
        i = bisect.bisect_right(self.starts, address)
        return self.starts[max(i - 1, 0)], self.starts[min(i, len(self.starts) - 1)]

    def cut(self, ran, target):
        """Keep what ran, with the neighbour after it, which is where it ends."""
        wanted = {start for address in ran for start in self.around(address)}
        kept = [line for line in self.lines if int(line.split()[0], 16) in wanted or line.split()[2] in LANDMARKS]
        target.write_text("\n".join(kept) + "\n")


def read_loads(data):
    """The segments of a kcore: (address, size, offset, flags, physical address)."""
    table, size, count = (struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54))
    for i in range(count):
        kind, flags, offset, address, physical, length = struct.unpack_from("<IIQQQQ", data, table + i * size)
        if kind == PT_LOAD:
            yield address, length, offset, flags, physical


def code_that_ran(load, ran, symbols):
    """What to keep of a segment: [start, end) of functions that ran, those that touch as one."""
    address, length = load[:2]
    pieces = set()
    for at in ran:
        if address <= at < address + length:
            start, end = symbols.around(at)
            pieces.add((max(start, at // PAGE * PAGE - FUNCTION_MAX, address), min(end, (at // PAGE + 1) * PAGE)))
    runs = []
    for start, end in sorted(pieces):
        if runs and start <= runs[-1][1]:
            runs[-1][1] = max(end, runs[-1][1])
        else:
            runs.append([start, end])
    return runs


def cut_kcore(source, target, ran, symbols):
    """Keep the functions that ran; returns how many bytes of code that is."""
    data = source.read_bytes()
    runs = [(load, *run) for load in read_loads(data) for run in code_that_ran(load, ran, symbols)]
    head = bytearray(data[:ELF_HEADER])
    struct.pack_into("<Q", head, 32, ELF_HEADER)
    struct.pack_into("<HHHHH", head, 54, PROGRAM_HEADER, len(runs), 0, 0, 0)
    at = ELF_HEADER + PROGRAM_HEADER * len(runs)
    body = bytearray()
    for (address, _, offset, flags, physical), start, end in runs:
        size = end - start
        head += struct.pack("<IIQQQQQQ", PT_LOAD, flags, at + len(body), start, physical, size, size, 1)
        body += data[offset + start - address:offset + end - address]
    target.write_bytes(head + body)
    return len(body)


def cut_machine(source, target, ran):
    """Copy what is known of a machine, as far as it ran."""
    target.mkdir()
    symbols = Symbols(source / "kallsyms")
    size = cut_kcore(source / "kcore", target / "kcore", ran, symbols)
    symbols.cut(ran, target / "kallsyms")
    (target / "modules").write_bytes((source / "modules").read_bytes())
    print(f"{target}: {size} bytes of code")


def keep_option(text):
    queue, first, last = (int(word, 0) for word in text.split(":"))
    return queue, (first, last)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--keep", type=keep_option, action="append", required=True, metavar="QUEUE:FROM:TO")
    parser.add_argument("--guest", action="append", default=[], metavar="PID:DIR")
    arg = parser.parse_args()
    guests = {int(pid): pathlib.Path(path) for pid, path in (text.split(":", 1) for text in arg.guest)}
    arg.out.mkdir(exist_ok=True)
    cut_data(arg.recording / "data", arg.out / "data", dict(arg.keep))
    with tempfile.TemporaryDirectory() as scratch:
        whole = pathlib.Path(scratch)
        (whole / "data").symlink_to((arg.out / "data").resolve())
        (whole / "kcore_dir").symlink_to((arg.recording / "kcore_dir").resolve())
        ran = executed(whole, list(guests.values()))
    cut_machine(arg.recording / "kcore_dir", arg.out / "kcore_dir", ran)
    for pid, path in guests.items():
        cut_machine(path, arg.out / f"kcore_dir__{pid}", ran)


if __name__ == "__main__":
    main()
