#!/usr/bin/env python3
"""truth.py PTVM: recordings whose every instruction is known, decoded and compared; prints TAP.

They are large, and not part of the project: a directory `shared` beside it, or $PTVM_SHARED, with recordings/NAME
(tools/unpack-recordings unpacks them, tools/truthcmp.c compares) and traces/NAME of real hardware (bench/ptconv.py
makes an ELF file of a memory image). Without it there is nothing to test."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tap

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("PTVM_SHARED", PROJECT.parent / "shared"))
PTVM = sys.argv[1]
MOST_TRUTH = 200 << 10      # compressed bytes of ground truth: what a few seconds suffice for
MOST_TRACE = 1 << 20
SNAPSHOT = 0.5              # a recording with a greater loss is one: it has but the end


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def recordings():
    """The small ones: directory and description."""
    base = pathlib.Path(output(SHARED / "tools/unpack-recordings").strip())
    for path in sorted(base.glob("*/recording.json")):
        info = json.loads(path.read_text())
        truths = [path.parent / name for name in info["truth"].values()]
        if len(info["guests"]) == 1 and sum(truth.stat().st_size for truth in truths) < MOST_TRUTH:
            yield path.parent, info


def script(directory, info, *args):
    """The command that decodes a recording."""
    guest = directory / info["guests"][0]["dir"]
    return [PTVM, "script", "-i", directory / info["input"], "--guestkallsyms", guest / "kallsyms",
            "--guestmodules", guest / "modules", "--insn-trace=raw", "--ns", *args]


def compare(compare_command, decode_command, truth=None):
    """Status and report of truthcmp, which reads what the other command prints."""
    with subprocess.Popen(decode_command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as decode:
        unpack = truth and subprocess.Popen(["zstd", "-dc", truth], stdout=subprocess.PIPE)
        fd = decode.stdout.fileno()
        run = subprocess.run([word.replace("DECODED", f"/dev/fd/{fd}") for word in compare_command], pass_fds=[fd],
                             stdin=unpack.stdout if unpack else None, capture_output=True, text=True, check=False)
        decode.stdout.close()
        if unpack:
            unpack.stdout.close()
            unpack.wait()
    assert decode.returncode == 0, f"script exits with {decode.returncode}"
    return run.returncode, run.stdout or run.stderr


def check_cpu(tool, directory, info, cpu):
    """Instructions in their order, and their times. What a lossy recording lacks is in its description."""
    lossy = info.get("lossy", 0)
    code, report = compare([tool, "--cpu", cpu, "--conv", info["conv"], *(["--skip-lost"] if lossy else []), "DECODED"],
                           script(directory, info, "-C", cpu, "-F", "cpu,time,nr,ip"), directory / info["truth"][cpu])
    found = re.search(r"(\d+) truth (\d+) decoded \d+ matched (\d+) missing (\d+) extra (\d+) wrong", report)
    assert found and (lossy or not code), report
    truth, decoded, missing, extra, wrong = map(int, found.groups())
    assert decoded and extra <= decoded / 1000 and not wrong, report
    assert lossy > SNAPSHOT or missing <= lossy * truth, report
    error = re.search(r"median (\d+) p99 (\d+) .* backwards (\d+)", report)
    assert error and int(error[1]) <= 40 and error[3] == "0", report


def check_threads(tool, directory, info):
    truths = [str(directory / name) for name in info["truth"].values()]
    code, report = compare([tool, "--threads", "DECODED", *truths], script(directory, info, "-F", "tid,nr,ip"))
    assert code == 0, report


def check_trace(name, digest):
    """The SHA-256 of the list of addresses that ran."""
    trace = SHARED / "traces" / name
    with tempfile.TemporaryDirectory() as place:
        elf = f"{place}/image"
        output(sys.executable, SHARED / "bench/ptconv.py", "--trace", trace / "trace.pt", "--image", trace / "image",
               "--elf", elf)
        lines = output(PTVM, "script", "--pt", trace / "trace.pt", "--elf", elf, "--insn-trace=raw", "-F", "ip")
    found = hashlib.sha256()
    for line in lines.splitlines():
        found.update(line.strip().encode() + b"\n")
    assert found.hexdigest() == digest, f"{len(lines.splitlines())} addresses, but not those"


def checks(place):
    """Each check by its name."""
    tool = f"{place}/truthcmp"
    output("cc", "-O2", "-o", tool, SHARED / "tools/truthcmp.c")
    for directory, info in recordings():
        if info["timed"]:
            for cpu in info["truth"]:
                yield f"{info['name']} cpu {cpu}", lambda d=directory, i=info, c=cpu: check_cpu(tool, d, i, c)
        else:
            yield f"{info['name']} threads", lambda d=directory, i=info: check_threads(tool, d, i)
    digests = re.findall(r"^ +(\w+) +([0-9a-f]{64})$", (SHARED / "traces/README.md").read_text(), re.M)
    for name, digest in digests:
        if (SHARED / "traces" / name / "trace.pt").stat().st_size < MOST_TRACE:
            yield f"trace of {name}", lambda n=name, d=digest: check_trace(n, d)


def main():
    if not (SHARED / "recordings").is_dir():
        tap.skip_all(f"no recordings with ground truth in {SHARED}")
    missing = [tool for tool in ("cc", "zstd") if not shutil.which(tool)]
    if missing:
        tap.skip_all(f"needs {' and '.join(missing)}")
    with tempfile.TemporaryDirectory() as place:
        tap.run(list(checks(place)))


if __name__ == "__main__":
    main()
