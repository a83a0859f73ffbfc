# SPDX-License-Identifier: Apache-2.0
"""PURE. Text or bytes in, model out; opens nothing."""
