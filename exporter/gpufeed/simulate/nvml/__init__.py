# SPDX-License-Identifier: Apache-2.0
"""The simulated NVML: what `import pynvml` finds on a node that does not exist."""

from gpufeed.simulate.nvml.face import Face, install, installed, uninstall

__all__ = ["Face", "install", "installed", "uninstall"]
