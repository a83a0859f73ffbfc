# SPDX-License-Identifier: Apache-2.0
"""Evidence to sentences. Pure: what was folded in, what a person reads out."""
