# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the cases of other people's programs share."""
import contextlib
import os
import shutil
import tempfile

from harness import Skipped, expect


def need(program, package):
    """Skips the test where a program is not installed. Some lie in sbin, which a user's PATH lacks."""
    if not shutil.which(program):
        raise Skipped(f"needs {program} (package {package})")


@contextlib.contextmanager
def folder(world):
    """A folder that the user of the world may write to, gone afterwards."""
    path = tempfile.mkdtemp(prefix="uiwarp-e2e-")
    try:
        os.chmod(path, 0o777)
        yield path
    finally:
        # What an unprivileged user left in folders of its own is root's to remove, or its own.
        shutil.rmtree(path, ignore_errors=True)


def random_file(path, size):
    with open(path, "wb") as file:
        file.write(os.urandom(size))
    os.chmod(path, 0o644)
    return path


def same(left, right):
    try:
        with open(left, "rb") as a, open(right, "rb") as b:
            return a.read() == b.read()
    except OSError:
        return False


def expect_rdma(tool):
    """The program opened a uiwarp device: it did not quietly do the same over TCP."""
    try:
        with open(f"/proc/{tool.pid}/maps") as maps:
            loaded = maps.read()
    except OSError:
        loaded = ""
    expect("libuiwarp-rdmav" in loaded, "it runs without having opened an RDMA device", tool)
