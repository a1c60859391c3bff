#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Closes a device with a protection domain left, by functions of libibverbs that keep the interpreter's lock, as those of
pyverbs do. run.py expects one finding, which names lines of this file."""
import ctypes

verbs = ctypes.PyDLL("libibverbs.so.1")
for name in ("ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd"):
    getattr(verbs, name).restype = ctypes.c_void_p
verbs.ibv_get_device_name.restype = ctypes.c_char_p


def open_loopback():
    entries = ctypes.cast(verbs.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))
    at = 0
    while verbs.ibv_get_device_name(ctypes.c_void_p(entries[at])) != b"uiw_lo":
        at += 1
    context = verbs.ibv_open_device(ctypes.c_void_p(entries[at]))
    verbs.ibv_free_device_list(entries)
    return ctypes.c_void_p(context)


def make_domain(context):
    return verbs.ibv_alloc_pd(context)  # made here


device = open_loopback()
assert make_domain(device)
assert verbs.ibv_close_device(device) == 0
