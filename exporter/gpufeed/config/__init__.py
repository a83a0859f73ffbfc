# SPDX-License-Identifier: Apache-2.0
"""The configuration: one schema, from which the file, the flags and the reference derive.

`schema` says what keys there are; `document` and `decode` read a file strictly and name every problem at once;
`flags` does the same for the command line; `probe` cuts out what the probe has to know.
"""
