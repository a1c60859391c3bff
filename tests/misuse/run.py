#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs every program of this folder under `uiwarp run --check`, as it is and clean, and compares the kinds of the
findings with what its first comment says: "Finding: KIND", once or more, or "Hint: KIND" for one that only hints=1 shows.
"Face: roce": the devices of lo have it.

    run.py UIWARP-BINARY FOLDER-OF-THE-PROGRAMS [NAME...]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LIMIT = 100   # seconds: far more than one takes
FOUND = 66


def expected(source):
    """(kinds, whether they are hints)"""
    found = re.findall(r"^ \* (Finding|Hint): (\S+)$", source.read_text(), re.MULTILINE)
    return {kind for _, kind in found}, found[0][0] == "Hint"


def face_of(source):
    """(options of `uiwarp run`, environment)"""
    if "\n * Face: roce\n" not in source.read_text():
        return [], os.environ
    return ["--as", "roce"], {**os.environ, "UIWARP_DEVICES": "lo"}


def run(uiwarp, program, hints, *arguments, face=((), None)):
    """(the findings, exit status, what it said)"""
    options, environment = face
    with tempfile.TemporaryDirectory(prefix="uiwarp-misuse-") as folder:
        file = pathlib.Path(folder, "findings.json")
        ended = subprocess.run([uiwarp, "run", *options, f"--check=json={file},hints={int(hints)}", program, *arguments],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False,
                               env=environment)
        lines = file.read_text().splitlines() if file.exists() else []
    return [line for line in map(json.loads, lines) if "kind" in line], ended.returncode, ended.stdout


# Whose warnings say more than their finding, or earlier.
SAID_TWICE = {"short_receive": "how long the message was", "refused_read": "by the end that refused it",
              "refused_write": "by the end that refused it", "bound_destroyed": "why the request failed",
              "unpolled_full_queue": "without hints, too", "unacknowledged_event": "without hints, too", "small_queue": "at once",
              "overflown_queue": "at once", "overflown_unpolled": "at once"}
# The other end, which is in the same process here, tells of itself: what it was connected to, or was connecting to,
# was destroyed.
WARNING = r"^uiwarp: (?!.*(the peer ended the connection|or closed when it was asked))"


def problems(uiwarp, program, source):
    kinds, is_hint = expected(source)
    cases = [("as it is", kinds, FOUND, is_hint, ()), ("clean", set(), 0, True, ("clean",))]
    if is_hint:
        cases.append(("without hints", set(), 0, False, ()))
    for what, kinds, status, hints, arguments in cases:
        findings, ended, said = run(uiwarp, program, hints, *arguments, face=face_of(source))
        got = {finding["kind"] for finding in findings}
        if (got, ended) != (kinds, status):
            yield f"{source.name}, {what}: kinds {got}, status {ended}; expected {kinds}, {status}\n{said}"
        if kinds and source.stem not in SAID_TWICE and re.search(WARNING, said, re.MULTILINE):
            yield f"{source.name}, {what}: a warning says what the finding says\n{said}"


def places(uiwarp, folder):
    """The call that failed is shown first, and which request; what a device was closed with is not said again when the process ends."""
    findings, _, said = run(uiwarp, f"{folder}/misuse_busy_domain", False)
    if [place["label"] for place in findings[0]["places"]][:2] != ["called", "created"]:
        yield f"a domain that is busy: {said}"
    findings, _, said = run(uiwarp, f"{folder}/misuse_batch_in_init", False)
    if [finding["wr_id"] for finding in findings] != [4]:
        yield f"a batch that is refused does not have the wr_id of its first request: {said}"
    findings, _, said = run(uiwarp, f"{folder}/misuse_closed_with_objects", True)
    if len(findings) != 1:
        yield f"a device closed with objects: {len(findings)} findings\n{said}"


def without_instruments(uiwarp, program):
    """Where the instruments cannot be loaded, no device is opened and it is said why."""
    bin_folder = pathlib.Path(uiwarp).parent
    with tempfile.TemporaryDirectory(prefix="uiwarp-misuse-") as folder:
        for name in ("bin", "lib"):
            pathlib.Path(folder, name).mkdir()
        shutil.copy(uiwarp, f"{folder}/bin")
        for library in bin_folder.parent.joinpath("lib").glob("libuiwarp*.so*"):
            if "instruments" not in library.name:
                shutil.copy(library, f"{folder}/lib")
        command = [f"{folder}/bin/uiwarp", "run", "--check", program, "clean"]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
        if ended.returncode != 1 or ended.stdout.count("UIWARP_CHECK is set, but libuiwarp-instruments.so cannot be loaded") != 1:
            yield f"without libuiwarp-instruments.so: status {ended.returncode}\n{ended.stdout}"


def spellings(uiwarp, program):
    """What people write for --check works, or it is said what was meant."""
    def ended(words, value=None):
        environment = {**os.environ, **({"UIWARP_CHECK": value} if value else {})}
        done = subprocess.run([uiwarp, "run", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT,
                              check=False, env=environment)
        return done.returncode, done.stdout
    for words, value, status in (([program], "1", FOUND), ([program], "0", 0), (["--check=1", program], None, FOUND)):
        if ended(words, value)[0] != status:
            yield f"{words} with UIWARP_CHECK={value}: {ended(words, value)}"
    status, said = ended(["--check", "hints=1", program])
    if status != 2 or "--check=hints=1" not in said:
        yield f"--check hints=1: {status}, {said}"


# Misuse that is said without --check, too, once: what would wait for ever, or fail unheard.
SAID_ALWAYS = {"used_in_child": "uses verbs objects of the process that it is a fork of",
               "swapped_bytes": "with its bytes in the other order it is lkey 0x",
               "unacknowledged_event": "ibv_destroy_cq waits: ",
               "busy_domain": "ibv_dealloc_pd: in use by 2 queue pairs, 1 memory region: "}


def without_check(uiwarp, folder):
    for name, sentence in SAID_ALWAYS.items():
        ended = subprocess.run([uiwarp, "run", f"{folder}/misuse_{name}"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
        if ended.returncode != 0 or ended.stdout.count(sentence) != 1:
            yield f"{name}, without --check: status {ended.returncode}\n{ended.stdout}"


def in_python(uiwarp):
    """A call of a program in Python is shown with its file and line."""
    if sys.version_info < (3, 9):   # whose interpreter does not tell
        return
    program = pathlib.Path(__file__).with_name("in_python.py")
    line = 1 + program.read_text().splitlines().index("    return verbs.ibv_alloc_pd(context)  # made here")
    with tempfile.TemporaryDirectory(prefix="uiwarp-misuse-") as folder:
        file = pathlib.Path(folder, "findings.json")
        ended = subprocess.run([uiwarp, "run", f"--check=json={file}", sys.executable, program], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
        findings = [json.loads(each) for each in file.read_text().splitlines()]
    frames = [frame for finding in findings for place in finding.get("places", []) for frame in place["frames"]]
    places = [(frame.get("function"), frame.get("file"), frame.get("line")) for frame in frames]
    if ended.returncode != FOUND or ("make_domain", str(program), line) not in places:
        yield f"in Python: status {ended.returncode}, {places}\n{ended.stdout}"


def main():
    # The thread sanitizer ends a forked child of several threads that starts one, as used_in_child does.
    os.environ["TSAN_OPTIONS"] = os.environ.get("TSAN_OPTIONS", "") + ":die_after_fork=0"
    uiwarp, folder, *names = sys.argv[1:]
    here = pathlib.Path(__file__).parent
    sources = [source for source in sorted(here.glob("*.c")) if not names or source.stem in names]
    found = [problem for source in sources for problem in problems(uiwarp, f"{folder}/misuse_{source.stem}", source)]
    if not names:
        found += places(uiwarp, folder)
        found += spellings(uiwarp, f"{folder}/misuse_busy_domain")
        found += without_check(uiwarp, folder)
        found += in_python(uiwarp)
        found += without_instruments(uiwarp, f"{folder}/misuse_{sources[0].stem}")
    print("\n".join(found) or f"{len(sources)} programs, as expected")
    return 1 if found or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
