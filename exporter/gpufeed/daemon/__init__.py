# SPDX-License-Identifier: Apache-2.0
"""The server process, composed: frames of the probe are folded into one state, from which all else is made.

`daemon` starts and stops the parts, `node` folds, `recent` remembers and evaluates alerts, `scrapes` writes, `saving`
keeps state over a restart, `reloading` brings a changed configuration into force.
"""
