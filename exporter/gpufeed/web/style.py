# SPDX-License-Identifier: Apache-2.0
"""The style sheet of the page, for light and dark. Its hash stands in the page's policy."""

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#d5dae0;--soft:#57606a;--alarm:#b3261e;
--busy:#2e7d4f;--communicating:#2b6cb0;--starved:#c8541b;--throttled:#9a6700;--idle_held:#8a8f98;--idle_free:#c4c9d0;
--fault:#b3261e;--unknown:#7b5ea7}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--paper:#14171b;--line:#343a42;--soft:#9aa4b0;--alarm:#ff8a80;
--busy:#4fb07a;--communicating:#64a1e0;--starved:#ef8a55;--throttled:#d9a520;--idle_held:#767d88;--idle_free:#4a515b;
--fault:#ff6b60;--unknown:#a98bd6}}
body{margin:0 auto;max-width:80rem;padding:1rem;font:15px/1.45 system-ui,sans-serif;color:var(--ink);
background:var(--paper)}
h1{font-size:1.4rem;margin:.4rem 0}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}
a{color:inherit}small,footer,th{color:var(--soft)}footer{margin-top:2rem}
.banner{border:2px solid var(--throttled);padding:.4rem .8rem;margin:0 0 .8rem;font-weight:600}
.bad{color:var(--alarm);font-weight:600}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem .7rem .35rem 0;border-bottom:1px solid var(--line)}
th{font-weight:500}.number{white-space:nowrap;font-variant-numeric:tabular-nums}
svg{display:inline-block;background:var(--line);border-radius:2px}
.state{border-left:.7rem solid var(--line);padding-left:.35rem;white-space:nowrap}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0}
.busy{fill:var(--busy);border-color:var(--busy)}
.communicating{fill:var(--communicating);border-color:var(--communicating)}
.starved{fill:var(--starved);border-color:var(--starved)}
.throttled{fill:var(--throttled);border-color:var(--throttled)}
.idle_held{fill:var(--idle_held);border-color:var(--idle_held)}
.idle_free{fill:var(--idle_free);border-color:var(--idle_free)}
.fault{fill:var(--fault);border-color:var(--fault)}
.unknown{fill:var(--unknown);border-color:var(--unknown)}
"""
