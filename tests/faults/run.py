#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs a program under `uiwarp run --faults`: it must meet what the rules say, the same twenty times in a row, and
--check must find nothing wrong with it.

    run.py UIWARP-BINARY FOLDER-OF-THE-PROGRAM
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIMIT = 100   # seconds: far more than one takes
TIMES = 20
MESSAGES = 60
RULES = """seed 7
op=SEND nth=60 status=RETRY_EXC_ERR
op=SEND probability=0.1 delay=10us..200us
op=RECV every=25 delay=1ms
"""
ENDS = ["send 60: transport retry counter exceeded", "send 61: Work Request Flushed Error",
        "state ERR"]


def run(uiwarp, program, rules, *options):
    """(standard output, what was said of rules, everything else that was said, exit status)"""
    with tempfile.NamedTemporaryFile("w", prefix="uiwarp-faults-") as file:
        file.write(rules)
        file.flush()
        ended = subprocess.run([uiwarp, "run", *options, "--faults", file.name, program, str(MESSAGES)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)
    # Numbers of queue pairs are drawn; the two have their own order of events each.
    lines = [re.sub("0x[0-9a-f]+", "", line) for line in ended.stderr.splitlines()]
    injected = sorted(line for line in lines if line.startswith("uiwarp: faults: "))
    return ended.stdout.splitlines(), injected, [line for line in lines if line not in injected], ended.returncode


def problems(uiwarp, program):
    first = None
    for turn in range(TIMES):
        options = ["--check=hints=1"] if turn % 2 else []
        said, injected, others, status = run(uiwarp, program, RULES, *options)
        if (said, status) != (ENDS, 0) or any("check" in line for line in others):
            yield f"turn {turn}: status {status}\n" + "\n".join(said + injected + others)
        first = first or injected
        if injected != first:
            yield f"turn {turn}: not what came first\n" + "\n".join(injected) + "\nbut\n" + "\n".join(first)
    counts = [sum(f"line {line}:" in text for text in first or []) for line in (2, 3, 4)]
    if counts[0] != 1 or counts[1] < 1 or counts[2] != 2:
        yield f"rules were carried out {counts} times\n" + "\n".join(first or [])


def without_a_good_rule(uiwarp, program):
    said, injected, others, status = run(uiwarp, program, "op=SEND status=SUCCESS\n")
    if status != 2 or said or injected or "line 1: 'status=SUCCESS'" not in "\n".join(others):
        yield f"a wrong rule: status {status}\n" + "\n".join(said + injected + others)


def ready_made(uiwarp, program):
    """Ready-made rules go by their name."""
    listed = subprocess.run([uiwarp, "faults", "--list"], stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=False)
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    if listed.returncode or names != ["failover", "flaky-link", "no-resources", "slow-peer"]:
        yield f"--list: status {listed.returncode}\n{listed.stdout}"
    for name in names:
        said = subprocess.run([uiwarp, "faults", "--explain", name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=LIMIT, check=False)
        if said.returncode or not said.stdout.startswith("line "):
            yield f"--explain {name}: status {said.returncode}\n{said.stdout}"
    ran = subprocess.run([uiwarp, "run", "--faults", "slow-peer", program, "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, timeout=LIMIT, check=False)
    if ran.returncode or "line 2: " not in ran.stderr:
        yield f"--faults slow-peer: status {ran.returncode}\n{ran.stderr}"
    ran = subprocess.run([uiwarp, "run", "--faults", "slow", program, "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, timeout=LIMIT, check=False)
    if ran.returncode != 2 or "flaky-link" not in ran.stderr:
        yield f"--faults slow: status {ran.returncode}\n{ran.stderr}"


def what_met_nothing(uiwarp, program):
    said, injected, others, status = run(uiwarp, program, "op=READ nth=1 delay=1ms\nop=SEND nth=1 delay=1ms\n")
    if status or len(injected) != 2 or sum("met nothing: line 1: " in line for line in injected) != 1:
        yield f"what met nothing: status {status}\n" + "\n".join(said + injected + others)


def absent(uiwarp, program):
    """A rule of a device that is not there is no wrong one: it is said, by who explains it and by the program, once."""
    rules = "dev=uiw_none at=1000s port=down\ndev=uiw_lo at=1000s port=down\ndev=* at=1000s event=PORT_ERR\ngid=shift at=1000s\n"
    with tempfile.NamedTemporaryFile("w", prefix="uiwarp-faults-") as file:
        file.write(rules)
        file.flush()
        said = subprocess.run([uiwarp, "faults", "--explain", file.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=LIMIT, check=False)
    lines = said.stdout.splitlines()
    if said.returncode or len(lines) != 6 or "There is no device uiw_none on this host now" not in lines[1] or "uiw_lo" not in lines[1]:
        yield f"--explain of a device that is not there: status {said.returncode}\n{said.stdout}"
    said, injected, others, status = run(uiwarp, program, rules)
    told = [line for line in injected if "there is no device" in line]
    if status or len(told) != 1 or "line 1: there is no device uiw_none now" not in told[0]:
        yield f"a device that is not there: status {status}\n" + "\n".join(said + injected + others)


def datagrams(uiwarp, program):
    """Lost as they are sent, lost as they come, twice, in another order, and late: the same twenty times in a row."""
    for rules, wanted, count in (
            ("op=UD_SEND nth=2 drop\nop=UD_RECV nth=3 duplicate\nop=UD_RECV nth=4 reorder\n", "1 3 4 4 6 5 7 8 ", 3),
            ("op=UD_SEND nth=6 status=LOC_PROT_ERR\n", "1 2 3 4 5 local protection error", 1),
            ("op=UD_RECV nth=3 delay=60s\nop=UD_RECV nth=5 duplicate\n", "1 2 4 5 5 6 7 8 ", 2),
            ("seed 5\nop=UD_RECV nth=8 delay=10us..5ms\n", "1 2 3 4 5 6 7 8 ", 1)):
        first = None
        for turn in range(TIMES):
            said, injected, others, status = run(uiwarp, program, rules, "--as", "roce", *(["--check"] if turn % 2 else []))
            first = first or injected
            if status or said != [wanted] or len(injected) != count or injected != first or any("check" in line for line in others):
                yield f"datagrams, turn {turn}: status {status}\n" + "\n".join(said + injected + others)
    rules = "seed 5\nop=UD_RECV nth=8 status=GENERAL_ERR\n"
    said, _, others, status = run(uiwarp, program, rules)
    if status != 2 or "'status=GENERAL_ERR': allowed for op=UD_RECV: drop, duplicate, reorder, delay=MIN..MAX" not in "\n".join(others):
        yield f"a wrong rule of datagrams: status {status}\n" + "\n".join(said + others)


def peer(uiwarp, program):
    """By its next request a peer that is connected by number finds out, with both faces."""
    for face in ("iwarp", "roce"):
        said, injected, others, status = run(uiwarp, program, "op=RECV nth=1 status=GENERAL_ERR\n", "--as", face)
        if status or said != ["general error", "transport retry counter exceeded", "Work Request Flushed Error"]:
            yield f"peer, {face}: status {status}\n" + "\n".join(said + injected + others)


def refused(uiwarp, program):
    """What a call fails with by a rule is no finding, and what --check asks for itself counts for none."""
    rules = "verb=rereg_mr nth=1 errno=EBUSY\nverb=post_send nth=2 errno=ENOMEM\nverb=query_qp nth=1 errno=ENOMEM\n"
    wanted = ["rereg 16", "send 0", "send 12", "send 0", "send 12", "query 12", "query 0"]
    for options in ([], ["--check"]):
        said, injected, others, status = run(uiwarp, program, rules, *options)
        if status or said != wanted or len(injected) != 5:
            yield f"refused, {options}: status {status}\n" + "\n".join(said + injected + others)


def main():
    uiwarp, folder = sys.argv[1:]
    os.environ["UIWARP_DEVICES"] = "lo"  # with the RoCE face it has a device only where there is no other one
    program = str(pathlib.Path(folder, "faults_sequence"))
    found = [*datagrams(uiwarp, str(pathlib.Path(folder, "faults_datagrams"))),
             *peer(uiwarp, str(pathlib.Path(folder, "faults_peer"))),
             *refused(uiwarp, str(pathlib.Path(folder, "faults_refused"))),
             *problems(uiwarp, program), *without_a_good_rule(uiwarp, program),
             *what_met_nothing(uiwarp, program), *absent(uiwarp, program), *ready_made(uiwarp, program)]
    print("\n".join(found) or f"the same {TIMES} times")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
