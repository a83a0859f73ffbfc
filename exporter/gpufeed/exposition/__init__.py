# SPDX-License-Identifier: Apache-2.0
"""From the state to samples, from samples to ready bytes."""
