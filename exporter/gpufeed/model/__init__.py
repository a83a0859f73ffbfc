# SPDX-License-Identifier: Apache-2.0
"""PURE. What a node is: identities, samples, the frame that carries them, and the state folded from frames."""
