# SPDX-License-Identifier: Apache-2.0
"""What a user can set: the schema, the strict loader, and the reference made from the schema."""
