# SPDX-License-Identifier: Apache-2.0
"""Who may ask: TLS, passwords, security headers and a rate limit, from the file that Prometheus' exporters share.

`schema` is the file, `read` makes settings of it and refuses what Python cannot keep, `tls` builds contexts,
`passwords` and `rate` decide about one request, `door` holds what is in force and follows the file.
"""
