# SPDX-License-Identifier: Apache-2.0
"""PURE. The bounded recent past: rings of exported series for conditions, states and rates for page and API."""
