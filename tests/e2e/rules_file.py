# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A file of rules for `uiwarp run --faults`, for who tests that."""
import os
import tempfile


class RulesFile:
    """One with this text, which any user may read; its path."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        with tempfile.NamedTemporaryFile("w", prefix="uiwarp-faults-", delete=False) as file:
            file.write(self.text)
        os.chmod(file.name, 0o644)
        self.path = file.name
        return self.path

    def __exit__(self, *_):
        os.unlink(self.path)
