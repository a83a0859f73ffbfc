# SPDX-License-Identifier: Apache-2.0
"""PURE. Every metric we promise, once: exposition, METRICS.md and the checks of rules and dashboards derive from it."""
