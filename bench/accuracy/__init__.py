# SPDX-License-Identifier: Apache-2.0
"""How right the attribution is: scenarios are lived, seen through sensors, and its answer is held to their truth."""
