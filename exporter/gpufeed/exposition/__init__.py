# SPDX-License-Identifier: Apache-2.0
"""State → families → bytes. `project.families` says what is exported, `encoder.Encoder` how it is written."""
