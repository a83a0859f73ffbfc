# SPDX-License-Identifier: Apache-2.0
"""The child process: lanes, slots, writer, governor. Everything that can block."""
