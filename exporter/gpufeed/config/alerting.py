# SPDX-License-Identifier: Apache-2.0
"""The keys of `alerting`."""

from typing import Annotated, Literal

from msgspec import Struct, field

from gpufeed.config.duration import Duration
from gpufeed.config.kinds import AlertLabel, AlertName, LabelName, Url, between
from gpufeed.config.mark import key, lasting
from gpufeed.config.web import DEFAULT_PORT


class BasicAuth(Struct, frozen=True, kw_only=True):
    """A name and a password."""

    username: Annotated[str, key("Name.")]
    password: Annotated[str | None, key("Password; better kept in password_file.", is_secret=True)] = None
    password_file: Annotated[str | None, key("File that holds the password.")] = None


class TlsClient(Struct, frozen=True, kw_only=True):
    """How a receiver is verified, and what we show it."""

    ca_file: Annotated[str | None, key("Authorities to trust instead of the system's.")] = None
    cert_file: Annotated[str | None, key("Our certificate.")] = None
    key_file: Annotated[str | None, key("Our key.")] = None
    server_name: Annotated[str | None, key("Name to verify instead of the URL's.")] = None


class Receiver(Struct, frozen=True, kw_only=True):
    """Where alerts are sent."""

    url: Annotated[Url, key("Address.")]
    basic_auth: Annotated[BasicAuth | None, key("Name and password.")] = None
    bearer_token_file: Annotated[str | None, key("File that holds a bearer token.")] = None
    tls: Annotated[TlsClient | None, key("TLS.")] = None
    timeout: Annotated[Duration, key("Longest wait for an answer.", check=between("1s", "1m"))] = lasting("10s")


Owner = Literal["prometheus", "node", "both"]
SeverityWord = Literal["page", "ticket", "info"]


class Threshold(Struct, frozen=True, kw_only=True):
    """What a site changes about a built-in alert; null leaves it."""

    threshold: Annotated[float | None, key("Limit.")] = None
    for_: Annotated[Duration | None, key("How long it must hold.")] = field(default=None, name="for")
    enabled: Annotated[bool | None, key("Whether it exists at all.")] = None
    evaluator: Annotated[Owner | None, key("Who evaluates it.")] = None
    severity: Annotated[SeverityWord | None, key("Severity; where nobody uses the GPU, at most this.")] = None


class SiteSeries(Struct, frozen=True, kw_only=True):
    """Series of one metric."""

    metric: Annotated[str, key("Metric, by full name.")]
    labels: Annotated[dict[LabelName, str], key("Labels the series must carry.")] = field(default_factory=dict)


class SiteCondition(Struct, frozen=True, kw_only=True):
    """An alert of the site's own, over one exported metric. It has the form of those that ship."""

    alert: Annotated[AlertName, key("Name.")]
    metric: Annotated[str, key("Metric, by full name.")]
    threshold: Annotated[float, key("Limit.")]
    labels: Annotated[dict[LabelName, str], key("Labels the series must carry.")] = field(default_factory=dict)
    over: Annotated[SiteSeries | None, key("Divide the sum of the series by the sum of these.")] = None
    without: Annotated[tuple[LabelName, ...], key("Labels to leave out: the worst of several is one alert.")] = ()
    statistic: Annotated[Literal["last", "min", "max", "mean", "rate", "increase"], key("Over the window.")] = "last"
    window: Annotated[Duration, key("Window; last has none.", check=between("1s", "7d"))] = lasting("5m")
    short_window: Annotated[Duration | None, key("Must hold over this one too.", check=between("1s", "7d"))] = None
    comparison: Annotated[Literal[">", ">=", "<", "<="], key("How it compares.")] = ">"
    for_: Annotated[Duration, key("How long it must hold.")] = field(default=lasting("0s"), name="for")
    keep_firing_for: Annotated[Duration, key("How long it fires on after that.")] = lasting("0s")
    severity: Annotated[SeverityWord, key("Severity.")] = "ticket"
    severity_idle: Annotated[SeverityWord | None, key("Severity where nobody lately used it.")] = None
    in_use: Annotated[Literal["gpu", "host"] | None, key("What decides between the two severities.")] = None
    layer: Annotated[
        Literal["gpu", "nvlink", "pcie", "fabric", "storage", "host", "job", "self"], key("What is at fault.")
    ] = "self"
    action: Annotated[
        Literal["app", "gpu_reset", "node_reboot", "drain", "replace", "tune", "investigate"], key("What to do.")
    ] = "investigate"
    evaluator: Annotated[Owner, key("Who evaluates it; node and both take windows up to 30m.")] = "prometheus"
    summary: Annotated[str, key("One sentence for people; takes {value} and labels of the series.")] = ""
    description: Annotated[str, key("Full sentences for people, in the same form.")] = ""
    runbook_url: Annotated[Url | None, key("Runbook; null: below alerting.runbook_base_url.")] = None


class Alerting(Struct, frozen=True, kw_only=True):
    """Alerts sent from the node itself; none by default."""

    alertmanagers: Annotated[tuple[Receiver, ...], key("Each gets every alert that the node itself evaluates.")] = ()
    webhooks: Annotated[
        tuple[Receiver, ...], key("Each gets every beginning and end of an alert, in Alertmanager's webhook form.")
    ] = ()
    labels: Annotated[dict[AlertLabel, str], key("On every alert; as in Prometheus' scrape configuration.")] = field(
        default_factory=lambda: {"job": "gpufeed", "instance": f"{{hostname}}:{DEFAULT_PORT}"}
    )
    runbook_base_url: Annotated[Url | None, key("Runbooks are linked below this.")] = None
    thresholds: Annotated[dict[AlertName, Threshold], key("What the site changes, by alert name.")] = field(
        default_factory=dict
    )
    conditions: Annotated[tuple[SiteCondition, ...], key("Alerts of the site's own.")] = ()
