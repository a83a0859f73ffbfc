# SPDX-License-Identifier: Apache-2.0
"""gpufeed: says, for every GPU of a node and all of its time, whether it was fed."""

__version__ = "0.1.0"
