# SPDX-License-Identifier: Apache-2.0
"""What is served over HTTP. Gets everything it serves as callables; knows no metric, no probe, no configuration file.

`app` has the routes, `server` the sockets, `guard` keeps slow and hostile clients from taking the server down.
"""
