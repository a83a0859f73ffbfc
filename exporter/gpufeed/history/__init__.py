# SPDX-License-Identifier: Apache-2.0
"""PURE. Bounded rings of exported series, for conditions, page and API."""
