# SPDX-License-Identifier: Apache-2.0
"""The third face of a judged node: frames as a probe would send them, with all that sensors add, lose and delay."""
