# SPDX-License-Identifier: Apache-2.0
"""PURE. The conditions, a topic a file."""
