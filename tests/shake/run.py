#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs every program of this folder under `uiwarp shake` with up to two hundred seeds: one of them must make it fail, and none of 25 when
it is clean. Without --shake it passes as it is. Then what the command says of runs that fail, hang or cannot begin.

    run.py [--clean SEEDS] UIWARP-BINARY FOLDER-OF-THE-PROGRAMS [NAME...]

--clean: only the clean programs, with so many seeds; for builds with sanitizers.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

LIMIT = 250   # seconds: far more than all the runs of a program take
SEEDS = 200         # one of them makes it fail, also where others keep the processors busy
CLEAN_SEEDS = 25    # none of them does
TRIES = 50         # without --shake it passes in one of them, also where others keep the processors busy


def run(uiwarp, *arguments):
    """(exit status, what it said)"""
    ended = subprocess.run([uiwarp, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT,
                           check=False)
    return ended.returncode, ended.stdout


# By which liberty a program fails, where that does not depend on the machine.
LIBERTIES = {"stale_key": "keys", "same_number": "numbers"}


def why_problems(uiwarp, program, liberty):
    status, said = run(uiwarp, "shake", "--runs", str(SEEDS), "--why", "--", program)
    failing = re.findall(r"^    only=(\S+) +exit status 1$", said, re.MULTILINE)
    again = re.search(rf"again by:\n    uiwarp run --shake \d+,only={liberty} -- {program}\n$", said)
    if status != 1 or failing != [liberty] or not again:
        yield f"{program} --why: status {status}\n{said}"


def problems(uiwarp, program):
    # What it relies on is not promised without --shake either, and a busy machine may not give it at once.
    runs = []
    while len(runs) < TRIES and (not runs or runs[-1][0] != 0):
        runs.append(run(uiwarp, "run", program))
    if runs[-1][0] != 0:
        yield f"{program}, without --shake: {runs}"
    status, said = run(uiwarp, "shake", "--runs", str(SEEDS), "--", program)
    again = re.search(r"^uiwarp: seed (\d+): exit status 1; again by \(it may take several runs\):\n    uiwarp run --shake \1 -- (\S+)$", said, re.MULTILINE)
    if status != 1 or not again or again[2] != program or "not so: " not in said:
        yield f"{program}: status {status}; no seed of {SEEDS} makes it fail\n{said}"
    if "/shake_full_" in program and "full under --shake" not in said:
        yield f"{program}: nothing says that it is --shake that finds a queue full\n{said}"


def clean_problems(uiwarp, program, seeds):
    status, said = run(uiwarp, "shake", "--runs", str(seeds), "--", program, "clean")
    if status != 0 or said != f"{seeds} runs, seeds 1 to {seeds}: none failed\n":
        yield f"{program}, clean: status {status}\n{said}"


def is_alive(pid):
    try:
        return "\nState:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def why(uiwarp):
    """What --why makes of a command of which the test says when it fails."""
    def ended(cases):
        return run(uiwarp, "shake", "--why", "--", "sh", "-c", f'case "$UIWARP_SHAKE" in {cases} esac')
    alone = "*=keys | *=late | 1) exit 4;;"
    both = "*only=late,only=full) exit 4;; off | *only=* | *without=late | *without=full) ;; *) exit 4;;"
    for name, cases, last in (
            ("one or the other", alone, ["1,only=late", "1,only=keys"]),
            ("both together", both, ["1,only=late,only=full"]),
            ("it fails anyway", "*) exit 4;;", "uiwarp: it fails without --shake, too\n"),
            ("none is needed", "off | *only*) ;; *) exit 4;;", "uiwarp: no liberty is enough, and none is needed")):
        status, said = ended(cases)
        good = last in said if isinstance(last, str) else re.findall(r"; again by:\n    uiwarp run --shake (\S+) -- sh", said) == last
        if status != 1 or not good or "uiwarp: seed 1: exit status 4; again by" not in said:
            yield f"--why, {name}: status {status}\n{said}"
    status, said = run(uiwarp, "shake", "--why", "--timeout", "3", "--", "sh", "-c", 'case "$UIWARP_SHAKE" in *=order | 1) sleep 100;; esac')
    if status != 1 or not re.search("^    only=order +not over after 3 s, and killed$", said, re.MULTILINE):
        yield f"--why of a run that hangs: status {status}\n{said}"


def command(uiwarp):
    """What `uiwarp shake` itself does."""
    shell = "echo seed $UIWARP_SHAKE; test $UIWARP_SHAKE -lt 14 || exit 3"
    status, said = run(uiwarp, "shake", "--runs", "9", "--from", "11", "--", "sh", "-c", shell)
    if status != 1 or said.splitlines() != ["seed 14", "uiwarp: seed 14: exit status 3; again by (it may take several runs):",
                                            f"    uiwarp run --shake 14 -- sh -c '{shell}'"]:
        yield f"a run that fails: status {status}\n{said}"
    with tempfile.TemporaryDirectory(prefix="uiwarp-shake-") as folder:
        file = pathlib.Path(folder, "pid")
        status, said = run(uiwarp, "shake", "--timeout", "5", "--", "sh", "-c", f"sleep 1000 & echo $! > {file}; wait")
        pid = int(file.read_text())
    if status != 1 or "uiwarp: seed 1: not over after 5 s, and killed; again by (it may take several runs):\n" not in said:
        yield f"a run that hangs: status {status}\n{said}"
    end = time.monotonic() + 20
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    if is_alive(pid):
        yield f"what a run has started is there still: process {pid}"
    shell = "echo first; yes 1234567 | head -c 10000000; echo last; exit 3"
    status, said = run(uiwarp, "shake", "--", "sh", "-c", shell)
    left_out = re.search(r"^uiwarp: (\d+) bytes of the output are left out here$", said, re.MULTILINE)
    lines = said.splitlines()
    if status != 1 or not left_out or lines[0] != "first" or lines[-3] != "last" or not 9_000_000 < int(left_out[1]) < 10_000_000:
        yield f"a run that says much: status {status}, {len(said)} bytes\n{said[:200]}...{said[-400:]}"
    status, said = run("sh", "-c", "trap '' CHLD; exec \"$0\" shake --runs 2 -- sh -c 'exit 5'", uiwarp)
    if status != 1 or "exit status 5" not in said:
        yield f"a run that fails where SIGCHLD is ignored: status {status}\n{said}"
    status, said = run(uiwarp, "shake", "--timeout", "nan", "--", "true")
    if status != 2:
        yield f"a time-out that is no number: status {status}\n{said}"
    status, said = run(uiwarp, "shake", "--", "no-such-program-of-ours")
    if status != 127 or "cannot be started" not in said:
        yield f"a program that is not there: status {status}\n{said}"
    status, said = run(uiwarp, "run", "--shake", "many", "true")
    if status != 2 or "--shake many: the seed, a number of 64 bits, must come first" not in said:
        yield f"a wrong seed: status {status}\n{said}"
    status, said = run(uiwarp, "run", "--shake", "3,only=lates", "true")
    if status != 2 or "'only=lates': allowed behind the seed are only=NAME and without=NAME, of late, order, " not in said:
        yield f"a wrong name: status {status}\n{said}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clean", type=int, metavar="SEEDS")
    parser.add_argument("uiwarp")
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    here = pathlib.Path(__file__).parent
    sources = [source for source in sorted(here.glob("*.c")) if not given.names or source.stem in given.names]
    found = []
    for source in sources:
        program = f"{given.folder}/shake_{source.stem}"
        found += clean_problems(given.uiwarp, program, given.clean or CLEAN_SEEDS)
        if not given.clean:
            found += problems(given.uiwarp, program)
            if source.stem in LIBERTIES:
                found += why_problems(given.uiwarp, program, LIBERTIES[source.stem])
    # A shell that is not built with the thread sanitizer does not live with its library.
    if not given.names and not given.clean:
        found += command(given.uiwarp)
        found += why(given.uiwarp)
    print("\n".join(found) or f"{len(sources)} programs, as expected")
    return 1 if found or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
