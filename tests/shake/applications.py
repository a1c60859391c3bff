#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs applications of doc/applications.md under `uiwarp shake`, both ends under the same seed, one seed after the other
for as long as each may take, and prints what failed. doc/shake.md has what was seen. Not among the tests: it takes a
quarter of an hour.

    applications.py [--from N] [--seeds N] [--seconds N] [--output FOLDER] UIWARP-BINARY [NAME...]
"""
import argparse
import pathlib
import shutil
import socket
import subprocess
import sys
import time

FIRST_PORT = 20000
FIO = "--ioengine=rdma --port=$P --bs=16k --size=1m --iodepth=8 --verify_state_save=0 --output-format=terse"
# name: (packages have it, server, client, settings). $P: a port, $H: an address of this host that is not loopback's.
APPLICATIONS = {
    "rping": ("rping -s -a 127.0.0.1 -p $P -C 20 -V", "rping -c -a 127.0.0.1 -p $P -C 20 -V", ""),
    **{f"ibv_{kind}_pingpong{name}": (f"ibv_{kind}_pingpong -d uiw_lo -g 0 -p $P -n 200{more}",
                                      f"ibv_{kind}_pingpong -d uiw_lo -g 0 -p $P -n 200{more} 127.0.0.1", face)
       for kind, face in (("rc", ""), ("srq", ""), ("ud", "UIWARP_FACE=roce"), ("uc", "UIWARP_FACE=roce"))
       for name, more in (("", ""), (" -e", " -e"))},
    **{f"{test}{more}": (f"{test} -R -d uiw_lo -F -p $P -n 100{more}", f"{test} -R -d uiw_lo -F -p $P -n 100{more} 127.0.0.1", "")
       for test in ("ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat", "ib_atomic_bw",
                    "ib_atomic_lat")
       for more in (("", " -e") if test in ("ib_send_bw", "ib_read_bw") else ("",))},
    "rstream": ("rstream -p $P -S 16384 -C 200 -I 20 -T v", "rstream -s 127.0.0.1 -p $P -S 16384 -C 200 -I 20 -T v", ""),
    "riostream": ("riostream -p $P -S 65536 -C 5 -I 20 -T v", "riostream -s 127.0.0.1 -p $P -S 65536 -C 5 -I 20 -T v", ""),
    "ucmatose": ("ucmatose -p $P -C 20 -c 4", "ucmatose -s 127.0.0.1 -p $P -C 20 -c 4", ""),
    "udaddy": ("P=7174; udaddy -b 127.0.0.1 -C 20 -c 4", "udaddy -s 127.0.0.1 -C 20 -c 4", "UIWARP_FACE=roce"),
    "fio": (f"fio --name=target {FIO} --rw=read --verify=crc32c",
            f"fio --name=source {FIO} --hostname=127.0.0.1 --verb=send --rw=write --verify=crc32c --do_verify=0", ""),
    "fi_pingpong": ("fi_pingpong -p verbs -e msg -c -I 100 -B $P", "fi_pingpong -p verbs -e msg -c -I 100 -P $P $H", ""),
    "fi_pingpong rxm": ("fi_pingpong -p 'verbs;ofi_rxm' -e rdm -c -I 100 -B $P",
                        "fi_pingpong -p 'verbs;ofi_rxm' -e rdm -c -I 100 -P $P $H", ""),
    **{f"ucx_perftest {test}": (f"ucx_perftest -p $P -t {test} -n 100 -w 10", f"ucx_perftest -p $P -t {test} -n 100 -w 10 127.0.0.1",
                                "UIWARP_FACE=roce UCX_TLS=rc,self")
       for test in ("tag_lat", "tag_bw", "ucp_put_lat", "ucp_get")},
}
# The client begins when somebody listens; the status is that of the end which failed.
SHELL = """P={port} H={host}; {server} & server=$!
i=0; until ss -Hltun "sport = :$P" | grep -q . || test $i -ge 500; do sleep 0.02; i=$((i+1)); done
{client}; client=$?; wait $server; server=$?; echo "client $client, server $server"; test $client = 0 -a $server = 0"""


def address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return None


def run_application(given, number, name, host):
    server, client, settings = APPLICATIONS[name]
    failed, seed = [], given.first - 1
    end = time.monotonic() + given.seconds
    while seed < given.seeds and (seed < given.first or time.monotonic() < end):
        seed += 1
        script = SHELL.format(port=FIRST_PORT + number * 200 + seed, host=host, server=server, client=client)
        command = [given.uiwarp, "shake", "--runs", "1", "--from", str(seed), "--timeout", str(given.patience), "--", "env",
                   *settings.split(), "sh", "-c", script]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if ended.returncode == 0:
            continue
        failed.append(seed)
        if given.output:
            file = pathlib.Path(given.output, f"{name.replace(' ', '_')}.{seed}")
            file.write_bytes(ended.stdout)
    return seed, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--from", type=int, default=1, dest="first", help="the first seed")
    parser.add_argument("--seeds", type=int, default=100, help="the last one")
    parser.add_argument("--seconds", type=float, default=30, help="for each application; the seed that has begun is ended")
    parser.add_argument("--patience", type=float, default=60, help="seconds for one run")
    parser.add_argument("--output", help="a folder for what failing runs print")
    parser.add_argument("uiwarp")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.output:
        pathlib.Path(given.output).mkdir(parents=True, exist_ok=True)
    host, any_failed = address(), False
    for number, name in enumerate(APPLICATIONS):
        if given.names and name not in given.names:
            continue
        if not shutil.which(name.split()[0]) or ("$H" in APPLICATIONS[name][1] and not host):
            print(f"{name}: not here", flush=True)
            continue
        last, failed = run_application(given, number, name, host)
        any_failed = any_failed or bool(failed)
        print(f"{name}: seeds {given.first} to {last}: {'failed: ' + ', '.join(map(str, failed)) if failed else 'none failed'}", flush=True)
    return 1 if any_failed else 0


if __name__ == "__main__":
    sys.exit(main())
