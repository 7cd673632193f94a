#!/usr/bin/env python3
"""What the CLI tests ask about a recording, of perf and ptvm in the same words.

`questions.py perf script -i RECORDING [OPTION]...` prints the answers of any such command as JSON; tests/golden/*.json
were made so by perf. Lines are compared by their words: fields are aligned differently."""
import hashlib
import json
import re
import subprocess
import sys

QUESTIONS = {
    "instructions": ["--itrace=i1i", "-F", "ip,sym,symoff,dso"],
    "code": ["--itrace=i1i", "-F", "ip,insn"],
    "threads": ["--itrace=i1i", "-F", "comm,tid,ip"],
    "branches": ["--itrace=b", "-F", "ip,sym,symoff,addr,flags"],
    "calls": ["--itrace=cr", "-F", "ip,sym,addr,flags"],
    "errors": ["--itrace=e"],
}


def packet(words):
    """Of a packet in -D: its offset, name and payload; None for other lines."""
    if len(words) < 3 or words[0] != "." or not re.fullmatch(r"[0-9a-f]{8}:", words[1]):
        return None
    at = 2
    while at < len(words) and re.fullmatch(r"[0-9a-f]{2}", words[at]):
        at += 1
    return [words[1]] + words[at:]


def lines(command, keep=lambda words: words):
    """The output of a command, each line as its words."""
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    # perf does not look for a machine's folder unless the recording's ids name that machine: to it any
    # guest is the default one
    text = re.sub(r"\[guest\.kernel\.kallsyms\.\d+\]", "[guest.kernel.kallsyms]", out.decode(errors="replace"))
    kept = (keep(line.split()) for line in text.splitlines())
    return [" ".join(words) for words in kept if words]


def asked(cpus):
    """Every question: name, arguments, which words of a line count."""
    for cpu in cpus:
        for name, args in QUESTIONS.items():
            yield f"{name} of CPU {cpu}", ["-C", str(cpu), *args], lambda words: words
    yield "packets", ["-D"], packet


def digest(answer):
    text = "\n".join(answer)
    return {"lines": len(answer), "sha256": hashlib.sha256(text.encode()).hexdigest()}


if __name__ == "__main__":
    answers = {name: digest(lines([*sys.argv[1:], *args], keep)) for name, args, keep in asked([0, 1])}
    print(json.dumps(answers, indent=1))
