# SPDX-License-Identifier: Apache-2.0
"""A node that does not exist: its physical truth, and the faces it shows to NVML and to sysfs and procfs."""
