#!/usr/bin/env python3
"""record_fake.py PTVM RECORD_FAKE: what `ptvm record` writes on a machine where the sample recording happens once more,
through rings of any size, decodes as the sample does; killed at any write, it decodes up to there. Prints TAP."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import questions
import tap

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = PROJECT / "examples/vm-small"
PTVM, FAKE = sys.argv[1:3]
GUEST = SAMPLE / "kcore_dir__106"
FILES = ["--guestkallsyms", GUEST / "kallsyms", "--guestmodules", GUEST / "modules"]
FIELDS = ["-F", "comm,tid,cpu,time,ip,sym,symoff,dso,addr,flags"]
CPUS = 2
# The threads as threads, so that perf takes the guest for the one that options tell of; or as a guest.
THREADS = ["-t", "106,109,113,226"]
MACHINE = ["-p", "106", "-t", "106,109,226", "--via", "none"]
KILLED = -9


class Bench:
    """A directory, where the fake machine has its files, too."""

    def __init__(self, where):
        self.where = pathlib.Path(where)
        self.count = 0

    def record(self, *options, step=4, how="patient", kill=0):
        """Returns the recording, and how it went."""
        self.count += 1
        made = self.where / f"recording-{self.count}"
        command = [FAKE, SAMPLE, str(step), how, str(kill), *options, "-e", "intel_pt/cyc=1/k", "-o", made]
        went = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": self.where},
                              timeout=60)
        assert went.returncode == (KILLED if kill else 0), f"{went.returncode}: {went.stderr}"
        for name in ["kcore_dir", "kcore_dir__106"]:
            if made.is_dir() and not (made / name).exists():
                (made / name).symlink_to(SAMPLE / name)
        return made, went


def lines(program, recording, *options):
    """What a decoder prints of a recording."""
    return questions.lines([program, "script", *options, *FIELDS, *FILES, "-i", recording])


def of_trace(program, recording, itrace):
    """Without the samples themselves, whose address is made up: they lie between the lines of the trace."""
    return [line for line in lines(program, recording, itrace)
            if "=>" in line or not re.search(r" (0|1000) \[unknown\] \(\[unknown\]\)$", line)]


def assert_same(program, recording):
    for itrace in ["--itrace=i1ibe", "--itrace=i0ns"]:
        found, expected = of_trace(program, recording, itrace), lines(program, SAMPLE, itrace)
        assert len(expected) > 100000, f"{len(expected)} lines"
        for at, (one, other) in enumerate(zip(found, expected)):
            assert one == other, f"{program} {itrace}: line {at}: found {one!r}, expected {other!r}"
        assert len(found) == len(expected), f"{len(found)} lines, expected {len(expected)}"


def code(program, recording):
    """What ran on each CPU; no times, which depend on what is behind."""
    command = [program, "script", "--itrace=i1i", "-F", "cpu,ip,sym", *FILES, "-i", recording]
    words = [line.split(" ", 1) for line in questions.lines(command)]
    made_up = ("0 [unknown]", "1000 [unknown]")  # of samples
    return [[line[1] for line in words if line[0] == f"[{cpu:03}]" and line[1] not in made_up] for cpu in range(CPUS)]


def test_rings_of_any_size_give_the_same_answers(bench):
    for options in [["-m", "4K,4K", *MACHINE], ["-m", "4K,8K", *THREADS], ["-m", "64K,1M", *THREADS]]:
        made, went = bench.record(*options)
        assert " 0 events left, 0 areas left," in went.stdout, went.stdout
        assert "lost" not in went.stderr, went.stderr
        assert_same(PTVM, made)


def test_perf_gives_the_same_answers(bench):
    tap.need("perf")
    for options, step in [(["-m", "4K,4K"], 4), (["-m", "64K,1M"], 1000)]:
        assert_same("perf", bench.record(*options, *THREADS, step=step)[0])


def per_thread(bench, *options):
    """The same trace in a buffer for each thread, not for each CPU."""
    made, went = bench.record("--per-thread", *options, *THREADS)
    assert " 0 events left, 0 areas left," in went.stdout, went.stdout
    assert "lost" not in went.stderr, went.stderr
    return made


def without_cpus(program, recording, itrace, fields):
    """Where a thread ran a recording per thread does not know."""
    found = questions.lines([program, "script", itrace, "-F", fields, *FILES, "-i", recording])
    assert len(found) > 100000, f"{len(found)} lines"
    return found


def test_traces_of_threads_give_the_same_answers(bench):
    for sizes in ["4K,4K", "64K,1M"]:
        made = per_thread(bench, "-m", sizes)
        for itrace in ["--itrace=i1ibe", "--itrace=i0ns"]:
            asked = itrace, "comm,tid,time,ip,sym,symoff,dso,addr,flags"
            assert without_cpus(PTVM, made, *asked) == without_cpus(PTVM, SAMPLE, *asked), f"{sizes} {itrace}"
    run = subprocess.run([PTVM, "script", "-C", "0", "-i", made], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (2, "", "ptvm script: -C: the recording does not say on which CPU "
                                                        "its threads ran; --tid selects one of them\n"), run.stderr


def test_perf_reads_traces_of_threads_alike(bench):
    """But for time, which it guesses between packets by what was before them in the queue."""
    tap.need("perf")
    made = per_thread(bench, "-m", "4K,8K")
    for itrace in ["--itrace=i1ibe", "--itrace=i0ns"]:
        asked = itrace, "comm,tid,ip,sym,symoff,dso,addr,flags"
        assert without_cpus("perf", made, *asked) == without_cpus(PTVM, made, *asked), itrace


def test_samples_of_tracepoints_lie_beside_the_trace(bench):
    made, _ = bench.record("--kvm-events", "-m", "64K,64K", *THREADS)
    assert_same(PTVM, made)
    if shutil.which("perf"):
        assert code("perf", made) == code("perf", SAMPLE), "perf finds something else"
    for program in [PTVM, "perf"] if shutil.which("perf") else [PTVM]:
        told = questions.lines([program, "script", "--no-itrace", "-F", "event,trace", "-i", made])
        assert told == ["kvm:kvm_entry: vcpu 0, rip 0xfff0"] * 8, told


def test_a_snapshot_is_the_end_of_the_trace(bench):
    made, _ = bench.record("-Se", "-m", "64K,4K", *THREADS)
    for program in [PTVM, "perf"] if shutil.which("perf") else [PTVM]:
        found, expected = code(program, made)[0], code(program, SAMPLE)[0]
        assert 1000 < len(found) < len(expected), f"{program}: {len(found)} lines"
        assert found == expected[-len(found):], f"{program}: not the end"


def sampled(bench, size, *options):
    """A recording of samples, taken whenever trace was handed out."""
    made, went = bench.record(f"--aux-sample={size}", "-m", "1M,64K", *options, *THREADS)
    assert " 0 events left, 0 areas left," in went.stdout, went.stdout
    assert "no trace" not in went.stderr and "lost" not in went.stderr, went.stderr
    return made


def test_samples_that_repeat_each_other_are_all_of_the_trace(bench):
    made = sampled(bench, "60K")
    for itrace in ["--itrace=i1ibe", "--itrace=i0ns"]:
        for program in [PTVM, "perf"] if shutil.which("perf") else [PTVM]:
            found, expected = of_trace(program, made, itrace), lines(program, SAMPLE, itrace)
            assert found == expected, f"{program} {itrace}: {len(found)} lines, expected {len(expected)}"


def test_small_samples_are_stretches_of_the_trace(bench):
    made = sampled(bench, "4K", "--kvm-events")
    found, expected = of_trace(PTVM, made, "--itrace=i1ibe"), lines(PTVM, SAMPLE, "--itrace=i1ibe")
    assert len(expected) // 10 < len(found) < len(expected), f"{len(found)} of {len(expected)} lines"
    rest = iter(expected)
    for line in found:
        assert line in rest, f"not there, or not at this time: {line!r}"


def test_perf_finds_the_same_stretches(bench):
    tap.need("perf")
    made = sampled(bench, "4K")
    found, expected = code(PTVM, made), code("perf", made)
    assert found == expected, f"{[len(of_cpu) for of_cpu in found]} lines, perf: {[len(of_cpu) for of_cpu in expected]}"


def test_a_machine_that_does_not_wait_loses_trace(bench):
    made, went = bench.record("-m", "4K,4K", *THREADS, how="lossy", step=200)
    stops, records = map(int, re.search(r"(\d+) stops, (\d+) records lost", went.stdout).groups())
    assert stops and records, went.stdout
    assert sum(map(int, re.findall(r"(\d+) stops?,", went.stderr))) == stops, went.stderr
    assert sum(map(int, re.findall(r"(\d+) records,", went.stderr))) == records, went.stderr
    for found, expected in zip(code(PTVM, made), code(PTVM, SAMPLE)):
        assert set(found) <= set(expected)


def assert_cut(made, whole, before):
    """It decodes up to a place, which is no earlier than that of a recording that was killed before."""
    found = code(PTVM, made)
    for cpu in range(CPUS):
        assert found[cpu] == whole[cpu][:len(found[cpu])], f"CPU {cpu} of {made}"
        assert len(found[cpu]) >= len(before[cpu]), f"CPU {cpu} of {made}: less than before"
    return found


def repair(made):
    subprocess.run([PTVM, "record", "--repair", made], check=True, capture_output=True)


def assert_repaired(made, found, with_perf):
    repair(made)
    data = (made / "data").read_bytes()
    repair(made)
    assert data == (made / "data").read_bytes(), f"{made} was repaired twice"
    assert code(PTVM, made) == found, f"{made}, repaired"
    for mine, theirs in zip(found, code("perf", made) if with_perf else []):
        assert theirs[:len(mine)] == mine[:len(theirs)], f"{made}, perf"
        # Behind the last whole packet perf goes on to the next branch.
        assert len(mine) * 9 // 10 <= len(theirs) <= len(mine) + 16, f"{made}: perf finds {len(theirs)} of {len(mine)}"


def test_a_killed_one_has_its_features_when_repaired(bench):
    """Without them perf chooses no CPU, and opens no file with tracepoints."""
    options = ["--kvm-events", "-m", "64K,64K", *THREADS]
    whole, went = bench.record(*options)
    assert not (whole / "data.ptvm-features").exists()
    made, _ = bench.record(*options, kill=int(went.stdout.split()[0]) - 5)
    assert (made / "data.ptvm-features").stat().st_mode & 0o777 == 0o600
    half = made / "kcore_dir__106.aB3dEf"  # a kernel that was being copied again
    half.mkdir()
    (half / "kcore").write_bytes(b"half")
    repair(made)
    assert not half.exists()
    assert not (made / "data.ptvm-features").exists()
    if shutil.which("perf"):
        chosen = ["perf", "script", "--no-itrace", "-F", "event,trace", "-C"]
        for cpu in range(CPUS):
            found, expected = (questions.lines([*chosen, str(cpu), "-i", recording]) for recording in [made, whole])
            assert found == expected, f"CPU {cpu}: {found}, expected {expected}"


def test_killed_at_any_write_it_decodes_up_to_there(bench):
    options = ["-m", "4K,4K", *THREADS]
    whole = code(PTVM, SAMPLE)
    writes = int(bench.record(*options, step=50)[1].stdout.split()[0])
    found, without = [[]] * CPUS, 0
    for number in range(1, writes + 1):
        made, _ = bench.record(*options, step=50, kill=number)
        read = subprocess.run([PTVM, "script", "--itrace=e", "-i", made], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
        if read.returncode:
            assert read.returncode == 1 and not any(found), f"write {number}: {read.stderr}"
            without += 1
            continue
        found = assert_cut(made, whole, found)
        if any(found) or number % 8 == 0:
            assert_repaired(made, found, shutil.which("perf") and number % 8 == 0)
        shutil.rmtree(made)
    assert without < writes / 3, f"{without} of {writes} have no beginning"
    assert [len(of_cpu) for of_cpu in found] == [len(of_cpu) for of_cpu in whole], "the last has not all"


def main():
    with tempfile.TemporaryDirectory() as where:
        tap.run(tap.tests_of(globals()), Bench(where))


if __name__ == "__main__":
    main()
