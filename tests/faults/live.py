#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Shows and changes the rules of a program while it runs, by `uiwarp faults PID`.

    live.py UIWARP-BINARY FOLDER-OF-THE-PROGRAM
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from rules_file import RulesFile

LIMIT = 100   # seconds: far more than anything here takes


def expect(condition, what, *seen):
    if not condition:
        raise AssertionError("\n".join([what, *map(str, seen)]))


class Program:
    """faults_steady, which sends until a Send fails; `errors` is what it has said when it has ended."""

    def __init__(self, uiwarp, folder, *run, environment=None):
        self.uiwarp, self.errors = uiwarp, ""
        self.said = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([uiwarp, "run", *run, os.path.join(folder, "faults_steady")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.said, text=True, env={**os.environ, **(environment or {})})
        self.pid = self.process.pid
        first = self.process.stdout.readline()
        if first != "sends\n":
            self.end()
            raise AssertionError(f"it does not send: {first}{self.errors}")

    def faults(self, *arguments, status=0, prefix=()):
        ended = subprocess.run([*prefix, self.uiwarp, "faults", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               timeout=LIMIT, check=False)
        expect(ended.returncode == status, f"uiwarp faults {arguments}: status {ended.returncode}", ended.stdout, ended.stderr)
        return ended.stdout + ended.stderr

    def rules(self):
        return json.loads(self.faults(str(self.pid), "--json"))

    def end(self):
        """What it has printed since, when it has ended by itself."""
        self.process.wait(LIMIT)
        printed = self.process.stdout.read()
        self.said.seek(0)
        self.errors = self.said.read()
        return printed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def rules_come_and_go(uiwarp, folder):
    with Program(uiwarp, folder, "--faults", "none") as program:
        pid = str(program.pid)
        expect("no rule is in force" in program.faults(pid), "a program that begins without rules")
        with RulesFile("seed 3\nop=SEND every=2 delay=1us\nop=READ delay=1ms\n") as rules:
            program.faults(pid, rules)
            for _ in range(1000):
                seen = program.rules()
                if seen["rules"][0]["injected"] > 2:
                    break
            expect(seen["rules"][0]["injected"] > 2 and seen["rules"][1]["injected"] == 0, "not injected", seen)
            expect((seen["pid"], seen["file"], seen["seed"], seen["rules"][0]["line"]) == (program.pid, rules, 3, 2), "other rules", seen)
            expect("op=SEND every=2 delay=1us" in program.faults(pid) and pid in program.faults(), "not shown")
        with RulesFile("op=SEND nth=2 status=LOC_LEN_ERR\nop=SEND nth=3 dealy=1ms\n") as wrong:
            text = program.faults(pid, wrong, status=2)
            expect("line 2: there is no 'dealy=1ms'; allowed: " in text, "a wrong rule is not named", text)
        expect("nor ready-made rules" in program.faults(pid, "nothing-like-it", status=2), "a name that there is not")
        expect(program.rules()["rules"][0]["rule"] == "op=SEND every=2 delay=1us", "wrong rules have changed something")
        program.faults(pid, "--off")
        expect(program.rules()["rules"] == [], "there are rules after --off")
        # Both times and counts begin with the change.
        with RulesFile("dev=* at=2ms port=down for=20ms\nop=SEND nth=20 status=RETRY_EXC_ERR\n") as rules:
            program.faults(pid, rules)
            printed = program.end()
    expect((printed, program.process.returncode) == ("ends: transport retry counter exceeded\n", 0), "another end", printed, program.errors)
    expect("now in force: 2 rules of " in program.errors and "no rule is in force any more" in program.errors, "not said", program.errors)
    expect("line 1: device *: its port is up again" in program.errors, "times do not begin anew", program.errors)
    expect("line 2: queue pair" in program.errors and "Send, number 20, completes with" in program.errors, "not counted anew", program.errors)


def ports_come_up_with_other_rules(uiwarp, folder):
    with RulesFile("dev=* at=1ms port=down\n") as rules, Program(uiwarp, folder, "--faults", "none") as program:
        program.faults(str(program.pid), rules)
        for _ in range(1000):
            if program.rules()["rules"][0]["injected"]:
                break
        expect("no rule" in program.faults(str(program.pid), "--off"), "still there")
        with RulesFile("op=SEND nth=20 status=RETRY_EXC_ERR\n") as ending:
            program.faults(str(program.pid), ending)
            printed = program.end()
    expect("ends: transport retry" in printed and "its port is up again" in program.errors, "it does not go on", printed, program.errors)


def who_does_not_answer(uiwarp, folder):
    """A clear message, at once or after a few seconds, and nothing is changed."""
    with RulesFile("op=SEND nth=1 status=GENERAL_ERR\n") as rules, Program(uiwarp, folder, "--faults", "none") as program:
        pid = str(program.pid)
        os.kill(program.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, program.pid, os.WSTOPPED)
        expect("is stopped; nothing was changed" in program.faults(pid, rules, status=1), "stopped")
        os.kill(program.pid, signal.SIGCONT)
        expect(program.rules()["rules"] == [], "it was changed nevertheless")
        another = ["setpriv", "--reuid", "65534", "--clear-groups"]
        # Who is not root cannot become another; and another may not reach a build in root's home.
        if os.getuid() == 0 and subprocess.run([*another, uiwarp, "--version"], stdout=subprocess.DEVNULL, timeout=LIMIT,
                                               check=False).returncode == 0:
            text = program.faults(pid, rules, status=1, prefix=another)
            expect("is another user's" in text, "another user", text)
            expect(program.rules()["rules"] == [], "another user has changed rules")
        program.process.stdin.close()
        program.process.wait(LIMIT)
        expect("there is no process" in program.faults(pid, status=1), "it has ended")
        expect("has opened no device under --faults" in program.faults(str(os.getpid()), status=1), "not under --faults")


def names_in_the_variable(uiwarp, folder):
    for name, rules in (("slow-peer", ["peer=* rate=100Mbit delay=1ms..5ms"]), ("none", [])):
        with Program(uiwarp, folder, environment={"UIWARP_FAULTS": name}) as program:
            seen = program.rules()
            expect([rule["rule"] for rule in seen["rules"]] == rules, f"UIWARP_FAULTS={name}", seen)


def main():
    uiwarp, folder = sys.argv[1:]
    status = 0
    for test in (rules_come_and_go, ports_come_up_with_other_rules, who_does_not_answer, names_in_the_variable):
        try:
            test(uiwarp, folder)
        except AssertionError as problem:
            print(f"{test.__name__}: {problem}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
