# SPDX-License-Identifier: Apache-2.0
"""The web configuration file and the files it names, to settings that can be put in force whole."""

import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpufeed.config.decode import Decoder
from gpufeed.config.document import MAX_BYTES, compose
from gpufeed.errors import ConfigError
from gpufeed.regular_file import read_regular
from gpufeed.web.access import tls as tls_settings
from gpufeed.web.access.schema import SECURITY_HEADERS, WebConfig

Signature = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What is in force: the file, decoded and found right, and the context for new connections."""

    config: WebConfig
    context: ssl.SSLContext | None  # None: without TLS
    files: tuple[Path, ...]  # the file itself and those it names
    signature: Signature  # of the files, from before they were read


def read(path: Path | str) -> Access:
    """Everything that a web configuration file says. Blocks. Raises ConfigError with every problem."""
    file = Path(path)
    of_file = signature((file,))
    config = _decoded(file)
    problems = [f"{file}: {key}: {text}" for key, text in _contradictions(config)]
    if problems:
        raise ConfigError(tuple(problems))
    tls, folder = config.tls_server_config, file.parent
    if not tls_settings.is_on(tls):
        return Access(config=config, context=None, files=(file,), signature=of_file)
    named = tls_settings.files(tls, folder)
    of_named = signature(named)
    try:
        context = tls_settings.context(tls, folder)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError((f"{file}: tls_server_config: {_why(error, named)}",)) from None
    return Access(config=config, context=context, files=(file, *named), signature=(*of_file, *of_named))


def signature(files: tuple[Path, ...]) -> Signature:
    """Changes when any of the files does; a file that is not there counts as such. Blocks."""
    return tuple(_signed(file) for file in files)


def _signed(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError as error:
        return (error.errno or 0,)
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def _decoded(file: Path) -> WebConfig:
    try:
        data = read_regular(file, MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError((f"{file}: cannot be read: {reason}",)) from None
    node, problems = compose(data, str(file))
    decoder = Decoder(str(file), WebConfig)
    config = WebConfig() if node is None else decoder.section(node, WebConfig)
    found = (*problems, *decoder.problems)
    if found:
        raise ConfigError(tuple(str(problem) for problem in found))
    return config if isinstance(config, WebConfig) else WebConfig()


def _contradictions(config: WebConfig) -> Iterator[tuple[str, str]]:
    tls = config.tls_server_config
    if tls_settings.is_on(tls):
        for key, text in tls_settings.refusals(tls):
            yield f"tls_server_config.{key}", text
    for name, value in config.http_server_config.headers.items():
        allowed = SECURITY_HEADERS.get(name)
        if allowed is None:
            yield f"http_server_config.headers.{name}", f"cannot be set; known: {', '.join(SECURITY_HEADERS)}"
        elif allowed and value not in allowed:
            yield f"http_server_config.headers.{name}", f"expected {' or '.join(allowed)}"


def _why(error: OSError | ValueError, files: tuple[Path, ...]) -> str:
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return "the key does not belong to the certificate"
        return f"not a certificate with its key in PEM form ({error.reason or 'unreadable'})"
    if isinstance(error, OSError):
        missing = next((str(file) for file in files if not os.access(file, os.R_OK)), "a file")
        return f"{missing}: cannot be read: {error.strerror or error}"
    return str(error)
