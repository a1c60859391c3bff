# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs that were built with sanitizers, which uiwarp was not."""
import os
import shutil
import subprocess
import tempfile

from harness import Skipped

SOURCES = os.path.dirname(os.path.abspath(__file__))
FIXED = ["setarch", "--addr-no-randomize"]   # older runtimes of ThreadSanitizer cannot bear all that Linux randomizes


class Programs:
    """What one compiler makes of tests/e2e/*.c with one sanitizer, in a folder that everybody may read."""

    def __init__(self, compiler, sanitizer):
        for program in (compiler, "setarch"):
            if not shutil.which(program):
                raise Skipped(f"needs {program}")
        self._command = [compiler, "-g", f"-fsanitize={sanitizer}"]
        self._folder = tempfile.mkdtemp(prefix="uiwarp-sanitized-")
        os.chmod(self._folder, 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self._folder)

    def build(self, source, *options, name=None):
        """How to start the program."""
        path = os.path.join(self._folder, name or source)
        done = subprocess.run([*self._command, os.path.join(SOURCES, source + ".c"), "-o", path, *options], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise Skipped(f"{' '.join(self._command)} cannot build {source}.c: {done.stdout.strip()}")
        return [*FIXED, path]
