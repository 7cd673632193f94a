"""Runs tests and prints how they went, as TAP."""
import pathlib
import shutil
import sys
import tempfile


class Skip(Exception):
    """A test that cannot run here, with the reason."""


def need(*programs):
    """Skip the test that calls this where one of the programs is not installed."""
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"no {program}")


def skip_all(reason):
    """End a script that cannot run any of its tests here."""
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def tests_of(names):
    """The functions of a module that begin with test_: pairs of what follows, and the function."""
    return [(name[5:], test) for name, test in names.items() if name.startswith("test_")]


def in_a_directory(test):
    """The test with an empty directory as its argument, which goes when the test ends."""
    def run():
        with tempfile.TemporaryDirectory() as where:
            test(pathlib.Path(where))
    return run


def run(tests, *arguments):
    """Call each test, pairs of name and function, with the arguments; then exit. A test that raises has failed."""
    print(f"1..{len(tests)}", flush=True)
    good = True
    for number, (name, test) in enumerate(tests, 1):
        try:
            test(*arguments)
            print(f"ok {number} - {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except Exception as reason:  # whatever it is, the other tests run
            good = False
            print(f"not ok {number} - {name}", flush=True)
            print(f"{name}: {type(reason).__name__}: {str(reason)[:2000]}", file=sys.stderr, flush=True)
    sys.exit(0 if good else 1)
