# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of what is read from a node: `make fuzz`. Bytes of real shape, bent in ways that files bend."""
