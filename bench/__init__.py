# SPDX-License-Identifier: Apache-2.0
"""What is measured and not tested: it takes minutes, and the answer is a number."""
