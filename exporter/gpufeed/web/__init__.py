# SPDX-License-Identifier: Apache-2.0
"""The HTTP server. Knows no metric: what it serves is handed to it."""
