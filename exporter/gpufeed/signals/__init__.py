# SPDX-License-Identifier: Apache-2.0
"""PURE. From counters to rates, from rates to where a GPU's time went."""
