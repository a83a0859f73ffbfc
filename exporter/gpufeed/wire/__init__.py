# SPDX-License-Identifier: Apache-2.0
"""What the server and the probe say to each other, how it is framed, and the server's end of it."""
