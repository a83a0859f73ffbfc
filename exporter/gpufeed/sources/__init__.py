# SPDX-License-Identifier: Apache-2.0
"""I/O. One source a file or folder; the only place where pseudo-files, sysfs, procfs and NVML are touched."""
