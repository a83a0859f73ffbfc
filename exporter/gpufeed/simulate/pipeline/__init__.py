# SPDX-License-Identifier: Apache-2.0
"""The judge: nodes whose jobs are simulated stage by stage, so that where every GPU's time went is known exactly."""
