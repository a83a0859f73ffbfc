# SPDX-License-Identifier: Apache-2.0
"""PURE. Checks, their verdicts with reason and action, and what keeps a verdict latched."""
