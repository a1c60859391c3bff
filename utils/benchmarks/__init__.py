# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What utils/bench is made of; doc/performance.md says what it measures."""
