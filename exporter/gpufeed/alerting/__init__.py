# SPDX-License-Identifier: Apache-2.0
"""One table of conditions, two evaluators: generated Prometheus rules and our own."""
