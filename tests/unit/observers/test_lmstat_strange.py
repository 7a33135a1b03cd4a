"""Texts as sites have them, and as no sample does: each whole with its numbers, and cut at every byte with no others."""

from collections.abc import Mapping
from typing import Final

import pytest

from tests.unit.observers.lmstat_text import HEAD, pool, server, session, users
from xce.adapters.observers.flexnet.parser import parse
from xce.adapters.observers.flexnet.report import Feature, Report, ReportState

#: (issued, in use, checked out, reserved, borrowed, queued); None: unknown.
Numbers = tuple[int | None, int | None, int, int, int, int]


def numbers(feature: Feature) -> Numbers:
    return (
        feature.issued,
        feature.in_use,
        feature.checked_out,
        feature.reserved,
        feature.borrowed,
        feature.queued,
    )


TRIAD: Final = """License server status: 7601@q1,7601@q2,7601@q3
    License file(s) on q1: /srv/q1.lic:/srv/extra.lic:

q1: license server UP v11.16.2
q2: license server UP (MASTER) v11.16.2
q3: Cannot connect to license server system.
 The license server manager (lmgrd) has not been started yet,
 the wrong port@host or license file is being used, or the
 port or hostname in the license file has been changed. (-15,578:10061 "WinSock: Connection refused")

Vendor daemon status (on q2):

   quorumd: UP v11.16.2
Feature usage info:

"""
SECOND: Final = "-" * 44 + "\n" + server("second", "    other: UP v11.18\n")
WINDOWS: Final = """lmutil - Copyright (c) 1989-2011 Flexera Software, Inc. All Rights Reserved.
Flexible License Manager status on Mon 11/30/2026 01:15

[Detecting lmgrd processes...]
License server status: 27000@WINBOX
    License file(s) on WINBOX: C:\\Program Files\\Licences\\all lic.dat:

    WINBOX: license server UP (MASTER) v11.9

Vendor daemon status (on WinBox):

       MLM: UP v11.9

Feature usage info:

"""

TEXTS: Final[Mapping[str, tuple[str, ReportState, Mapping[str, Numbers]]]] = {
    "two servers, each with the same feature and one of its own": (
        HEAD
        + server("first")
        + users("shared", 5, 2)
        + pool("shared")
        + session(handle=1)
        + session(handle=2)
        + "\n"
        + users("own", 3, 0)
        + SECOND
        + users("shared", 7, 3)
        + pool("shared", "other")
        + session("fern n2 :0", 3, ", 3 licenses")
        + "\n",
        ReportState.OK,
        {
            "first shared": (5, 2, 2, 0, 0, 0),
            "first own": (3, 0, 0, 0, 0, 0),
            "second shared": (7, 3, 3, 0, 0, 0),
        },
    ),
    "a quorum of three with one node down and the reason on four lines": (
        HEAD + TRIAD + users("gate", 9, 1) + pool("gate", "quorumd") + session() + "\n",
        ReportState.DEGRADED,
        {"7601@q1,7601@q2,7601@q3 gate": (9, 1, 1, 0, 0, 0)},
    ),
    "users that wait, one of them for many": (
        HEAD
        + server()
        + users("F", 4, 4)
        + pool("F")
        + session("busy n1 :0", 1, ", 4 licenses")
        + "    first n2 :0 (v1.0) (keys/27020 901) queued for 1 license\n"
        + "    second n3 (v1.0) (keys/27020 902) queued for 12 licenses\n\n",
        ReportState.OK,
        {"keys F": (4, 4, 4, 0, 0, 13)},
    ),
    "reservations of every kind, some of them used": (
        HEAD
        + server()
        + users("F", 20, 11)
        + pool("F")
        + "    2 RESERVATIONs for GROUP night shift (keys/27020)\n"
        + "\t1 RESERVATION for USER o'brien (keys/27020)\n"
        + "    5 RESERVATIONs for HOST_GROUP rack-7 (keys/27020)\n"
        + session("aster n1 :0", 1, ", 3 licenses")
        + "\n",
        ReportState.OK,
        {"keys F": (20, 3, 3, 8, 0, 0)},
    ),
    "several increments, with vendor strings, a session in two of them": (
        HEAD
        + server()
        + users("F", 12, 3)
        + pool("F", version="v2024.06").replace(
            "  floating license\n", "  vendor_string: UHD:SP=1, start Mon 1/1 0:00, 9 licenses\n  floating license\n"
        )
        + session("aster n1 :0", 1)
        + "\n"
        + pool("F", version="v2025.12-SP1")
        + session("aster n1 :0", 1)
        + session("fern n2 :0", 2, ", 2 licenses")
        + "\n",
        ReportState.OK,
        {"keys F": (12, 3, 3, 0, 0, 0)},
    ),
    "borrowed and lingering ones in pools of their own": (
        HEAD
        + server()
        + users("F", 9, 6)
        + pool("F")
        + session("away laptop1 :0", 1, ", 2 licenses (linger: 86000 / 604800)")
        + session("gone n4 /dev/pts/3", 2, " (linger: 600)")
        + session("here n5 /dev/pts/4", 3, ", 3 licenses (linger: 0 / 1800)")
        + "\n",
        ReportState.OK,
        {"keys F": (9, 6, 6, 0, 3, 0)},
    ),
    "dates of another language, and a display with blanks": (
        HEAD.replace("Tue 5/12/2026 14:07", "mar. 12/05/2026 14:07")
        + server()
        + users("F", 9, 4)
        + pool("F")
        + session("élodie poste 7 écran (2)", 1, ", 3 licenses", start="mer. 12.05. 8:03")
        + session("用户 主机 :0", 2, start="周二 5/12 8:03")
        + "\n",
        ReportState.OK,
        {"keys F": (9, 4, 4, 0, 0, 0)},
    ),
    "one of two vendor daemons is down, and one feature cannot be asked for": (
        HEAD
        + server(vendors="    northlm: Vendor daemon is down. (-97,121)\n    other: UP v11.18\n")
        + "Users of dead:  Cannot get users of dead: No socket connection to license server manager. (-7,10015)\n\n"
        + "Users of gone:  Cannot get users of gone: Cannot find SERVER hostname in network database (-14,7)\n\n"
        + users("alive", 8, 1)
        + pool("alive", "other")
        + session()
        + "\n",
        ReportState.DEGRADED,
        {
            "keys dead": (None, None, 0, 0, 0, 0),
            "keys gone": (None, None, 0, 0, 0, 0),
            "keys alive": (8, 1, 1, 0, 0, 0),
        },
    ),
    "expired, without a limit, uncounted, and a name with blanks and parentheses": (
        HEAD
        + server()
        + "Users of old:  (Error: 4 licenses, unsupported by licensed server)\n\n"
        + "Users of any:  (Uncounted, node-locked)\n\n"
        + pool("any").replace("  floating license", '  uncounted nodelocked license, locked to "ANY"')
        + session("aster n1 :0", 7)
        + "\n"
        + users("huge", 2147483647, 1)
        + pool("huge")
        + session("aster n1 :0", 8)
        + "\n"
        + users("Design Suite (Pro): core", 2, 1)
        + pool("Design Suite (Pro): core")
        + session("aster n1 :0", 9)
        + "\n",
        ReportState.OK,
        {
            "keys old": (4, None, 0, 0, 0, 0),
            "keys any": (None, None, 1, 0, 0, 0),
            "keys huge": (2147483647, 1, 1, 0, 0, 0),
            "keys Design Suite (Pro): core": (2, 1, 1, 0, 0, 0),
        },
    ),
    "an old one of another system, indented, with blanks in its paths": (
        WINDOWS
        + users("MATLAB", 5, 2)
        + '  "MATLAB" v38, vendor: MLM\n  floating license\n\n'
        + "    jdoe PC-77 PC-77 (v37) (WINBOX/27000 101), start Mon 11/30 0:58\n"
        + "    SYSTEM srv 01 srv 01 (v37) (WINBOX/27000 204), start Sun 11/29 23:59\n\n"
        + users("SIMULINK", 2, 0),
        ReportState.OK,
        {"27000@WINBOX MATLAB": (5, 2, 2, 0, 0, 0), "27000@WINBOX SIMULINK": (2, 0, 0, 0, 0, 0)},
    ),
}  # fmt: skip


def found(report: Report) -> dict[str, Numbers]:
    return {
        f"{one.server.removeprefix('27020@')} {one.name}": numbers(one) for one in report.features
    }


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_strange_text_gives_its_numbers(name: str, ending: str) -> None:
    text, state, expected = TEXTS[name]
    report = parse(text.replace("\n", ending))
    assert (report.state, report.cut) == (state, None)
    assert found(report) == expected


@pytest.mark.parametrize("name", TEXTS)
def test_a_strange_text_cut_at_any_byte_gives_no_other_number(name: str) -> None:
    text, _, expected = TEXTS[name]
    raw = text.encode()
    for length in range(len(raw)):
        report = parse(raw[:length].decode("utf-8", "surrogateescape"))
        between = raw[:length].endswith(b"\n\n")
        for feature, one in found(report).items():
            whole = expected[feature]
            if one != whole:
                # Nothing shows that a further part of the same feature follows: its header has counted that one too.
                assert between
                assert (one[0], one[1]) == whole[:2]
                assert one[2] <= whole[2]
        if not between and found(report) != expected:
            assert report.cut is not None, raw[:length][-60:]
