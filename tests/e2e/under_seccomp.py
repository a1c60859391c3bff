#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Becomes a command that may call only what a seccomp profile, in the format of container runtimes, allows.

    under_seccomp.py PROFILE.json[:but=NAME-PREFIX] COMMAND...
"""
import ctypes
import json
import os
import sys

ALLOW = 0x7fff0000
ERRNO = 0x00050000


def main():
    path, _, left_out = sys.argv[1].partition(":but=")
    with open(path) as file:
        profile = json.load(file)
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    context = library.seccomp_init(ERRNO | profile["defaultErrnoRet"])
    for rule in profile["syscalls"]:
        assert rule["action"] == "SCMP_ACT_ALLOW"
        for name in rule["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            if left_out and name.startswith(left_out):
                continue
            # A call that this architecture does not have is of no interest, as container runtimes see it.
            if library.seccomp_rule_add(context, ALLOW, number, 0) != 0 and number >= 0:
                sys.exit(f"{name} cannot be allowed")
    # Not without this by an ordinary user.
    assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0
    if library.seccomp_load(context) != 0:
        sys.exit("the filter cannot be loaded")
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
