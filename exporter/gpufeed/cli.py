# SPDX-License-Identifier: Apache-2.0
"""The command line: which command, which flags; no logic, and nothing imported that the command does not need."""

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Final

import gpufeed
from gpufeed.errors import ConfigError

EXIT_OK: Final = 0
EXIT_BAD_CONFIG: Final = 2
EXIT_UNWRITABLE: Final = 4
EXIT_INTERRUPTED: Final = 130

_DESCRIPTION: Final = "Says, for every GPU of a node and all of its time, whether it was fed, and if not, why."


@dataclass(frozen=True, slots=True)
class _Command:
    """A command: its module in `commands`, one line of help, and its own flags."""

    module: str
    help: str
    add_flags: Callable[[argparse.ArgumentParser], None]

    def load(self) -> ModuleType:
        """The module, imported now."""
        return importlib.import_module(f"gpufeed.commands.{self.module}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command named by the arguments; the return value is the exit code."""
    _open_standard_files()
    given = sys.argv[1:] if argv is None else argv
    parser = _parser(frozenset(given))
    arguments = parser.parse_args(given)
    command: _Command | None = getattr(arguments, "command", None)
    if command is None:
        parser.print_help()
        return EXIT_OK
    try:
        code: int = command.load().run(arguments)
        sys.stdout.flush()
    except ConfigError as error:
        for problem in error.problems:
            sys.stderr.write(f"gpufeed: {problem}\n")
        return EXIT_BAD_CONFIG
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `gpufeed once | head`
        sys.stderr.close()
        return EXIT_OK
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left is not tried again at exit
        sys.stderr.write(f"gpufeed: what it prints cannot be written: {error.strerror}\n")
        return EXIT_UNWRITABLE
    return code


def _open_standard_files() -> None:
    """Where the shell closed one (`2>&-`), what is opened next would take its number, and be written to."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)  # noqa: FBT003 the os module's own form: the probe's log goes there too
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 for good


def _parser(words: frozenset[str]) -> argparse.ArgumentParser:
    """The parser; only commands among `words` have their flags, because those of some take a while to import."""
    parser = argparse.ArgumentParser(prog="gpufeed", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"gpufeed {gpufeed.__version__}")
    listed = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, command in _COMMANDS.items():
        one = listed.add_parser(name, help=command.help, description=command.help, allow_abbrev=False)
        one.set_defaults(command=command)
        if name in words:
            command.add_flags(one)
    return parser


def _config_flags(parser: argparse.ArgumentParser) -> None:
    from gpufeed.config.flags import add_flags  # noqa: PLC0415 only commands that read a configuration need YAML

    add_flags(parser)


def _demo_flags(parser: argparse.ArgumentParser) -> None:
    from gpufeed.simulate.layout import LAYOUTS  # noqa: PLC0415 likewise
    from gpufeed.simulate.pipeline.scenarios import JUDGED  # noqa: PLC0415 likewise
    from gpufeed.simulate.scenarios import SCENARIOS  # noqa: PLC0415 only this command tells stories

    _config_flags(parser)
    stories = "; ".join(f"{name}: {story.description.rstrip('.')}" for name, story in SCENARIOS.items())
    judged = f"Others that accuracy is judged by: {', '.join(JUDGED)}."
    parser.add_argument(
        "--scenario", default="healthy", help=f"The story the simulated node tells. {stories}. {judged}"
    )
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of the simulated node, 1 to 16.")
    parser.add_argument("--model", default="h100", help="Their model.")
    parser.add_argument("--layout", default="slurm", help=f"How it is built and run: {', '.join(LAYOUTS)}.")


def _probe_flags(parser: argparse.ArgumentParser) -> None:
    text = "Where servers connect; default: probe.sock in the RUNTIME_DIRECTORY that systemd names."
    parser.add_argument("--socket", metavar="PATH", help=text)


def _once_flags(parser: argparse.ArgumentParser) -> None:
    _config_flags(parser)
    parser.add_argument("--format", choices=("text", "openmetrics", "json"), default="text", help="Form of the output.")


def _doctor_flags(parser: argparse.ArgumentParser) -> None:
    _config_flags(parser)
    parser.add_argument("--brief", action="store_true", help="Only what is here and cannot be read.")
    parser.add_argument("--json", action="store_true", help="As JSON.")
    parser.add_argument("--own", action="store_true", help="Look for itself, even where a daemon runs.")


def _capture_flags(parser: argparse.ArgumentParser) -> None:
    _config_flags(parser)
    parser.add_argument("out", metavar="OUT", help="Archive to write, such as node.tar.gz; it must not exist yet.")


def _check_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="Configuration file.")
    parser.add_argument("--reference", action="store_true", help="Print every key with its default instead.")


def _socket_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--socket", metavar="PATH", help="Control socket of the daemon; default: as configured.")
    parser.add_argument("--config.file", dest="config_file", metavar="FILE", help="Configuration file of the daemon.")


def _health_flags(parser: argparse.ArgumentParser) -> None:
    _socket_flags(parser)
    parser.add_argument("--json", action="store_true", help="As JSON.")


def _explain_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", metavar="URL", help="Ask the daemon at this address instead of this machine's own.")
    parser.add_argument("--window", metavar="DURATION", default="5m", help="How far back, at most 30m; 5m.")
    parser.add_argument("--gpu", metavar="GPU", help="One GPU alone, by number or UUID.")
    parser.add_argument("--json", action="store_true", help="As JSON.")
    _socket_flags(parser)


def _top_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", metavar="URL", help="Ask the daemon at this address instead of this machine's own.")
    parser.add_argument("--once", action="store_true", help="Print one screen and end.")
    _socket_flags(parser)


def _record_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", metavar="OUT", help="File to write; older ones become OUT.1, OUT.2 …")
    parser.add_argument("--for", dest="record_for", metavar="DURATION", default="5m", help="For how long; 5m.")
    parser.add_argument("--max-size", type=int, default=64, metavar="MIB", help="Of one file; 64.")
    parser.add_argument("--files", type=int, default=2, metavar="N", help="How many are kept; 2.")
    parser.add_argument("--with-names", action="store_true", help="Keep names, serial numbers and addresses.")
    _socket_flags(parser)


def _replay_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="A recording.")
    parser.add_argument("--format", choices=("explain", "json", "metrics"), default="explain", help="What to print.")
    parser.add_argument("--at", metavar="DURATION", help="At this moment after its begin; default: its end.")
    parser.add_argument("--window", metavar="DURATION", default="5m", help="How far back is explained; 5m.")


def _rules_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config.file", dest="config_file", metavar="FILE", help="Configuration file.")


def _maintenance_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("state", choices=("on", "off"), help="Begin or end it.")
    parser.add_argument("--for", dest="maintain_for", metavar="DURATION", default="2h", help="For how long; 2h.")
    _socket_flags(parser)


def _gpu_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("gpu", metavar="GPU", help="Its UUID or its number.")
    _socket_flags(parser)


def _release_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--for", dest="release_for", metavar="DURATION", default="10m", help="For how long; 10m.")
    parser.add_argument("--resume", action="store_true", help="Open NVML again now instead.")
    _socket_flags(parser)


def _metrics_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("markdown", "json"), default="markdown", help="Form of the output.")


_COMMANDS: Final = {
    "run": _Command("run", "Run the daemon.", _config_flags),
    "demo": _Command("demo", "Run the daemon over a simulated node.", _demo_flags),
    "probe": _Command("probe", "Run the probe as a unit of its own, for a server that holds no rights.", _probe_flags),
    "once": _Command("once", "Collect once and print everything that this node can say.", _once_flags),
    "doctor": _Command("doctor", "Say what this node can and cannot measure, why, and what to do.", _doctor_flags),
    "capture": _Command("capture", "Write the raw files that readings come from, redacted.", _capture_flags),
    "explain": _Command("explain", "Say where the GPUs' time went, and why.", _explain_flags),
    "top": _Command("top", "Show this node as it is now, again every second.", _top_flags),
    "record": _Command("record", "Write what the daemon reads to a file that can be sent and replayed.", _record_flags),
    "replay": _Command("replay", "Say of a recording what the daemon would have said.", _replay_flags),
    "check": _Command("check", "Health of this node as one line and an exit code, for schedulers.", _health_flags),
    "check-config": _Command("check_config", "Say what is wrong with a configuration file.", _check_flags),
    "rules": _Command("rules", "Print the alert rules for Prometheus.", _rules_flags),
    "metrics": _Command("metrics", "Print every metric there is.", _metrics_flags),
    "maintenance": _Command("maintenance", "Send no alerts from this node for a while.", _maintenance_flags),
    "ack": _Command("ack", "Clear a latched fault of a GPU that was dealt with.", _gpu_flags),
    "forget": _Command("forget", "Miss a GPU no longer that was taken out on purpose.", _gpu_flags),
    "release": _Command("release", "Let go of all GPUs for a reset or a driver upgrade.", _release_flags),
}
