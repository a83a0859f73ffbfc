# SPDX-License-Identifier: Apache-2.0
"""The NVIDIA driver, through nvidia-ml-py; the only place besides the simulator that imports it."""
