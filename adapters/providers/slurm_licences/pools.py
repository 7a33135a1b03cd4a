"""Where tokens of a Slurm stand: in slurmdbd, shared by clusters, or in ``Licenses=`` of one."""

import re
import shutil
import time
from pathlib import Path
from typing import Any, Final

from xce.adapters.providers.program import RefusalError
from xce.adapters.providers.slurm_commands import SlurmError, run

#: A change in slurmdbd reaches slurmctld in less than a second; if it does not, it is looked at again by the next call.
_SETTLE_S: Final = 10.0


def licence(conf: str, name: str) -> tuple[int, int]:
    """Return total and use of a licence as a cluster sees it."""
    for line in run(conf, "scontrol", "-o", "show", "lic").splitlines():
        told = dict(re.findall(r"(\w+)=(\S*)", line))
        if told.get("LicenseName") == name:
            return int(told["Total"]), int(told["Used"])
    return 0, 0


def waited_for(conf: str, name: str) -> int:
    """Return the tokens that jobs of a cluster wait for; those that wait for something else need none yet."""
    wanted = 0
    text = run(conf, "squeue", "-h", "-r", "-t", "PENDING", "-o", "%r %W")
    for line in text.splitlines():
        reason, _, licences = line.partition(" ")
        if reason == "Licenses":
            for one in licences.split(","):
                whose, _, amount = one.strip().partition(":")
                wanted += int(amount or 1) if whose == name else 0
    return wanted


def _fits(conf: str, name: str, total: int) -> bool:
    """Wait until a cluster counts with a total, so that no job starts above it, and return whether what is used is within."""
    end = time.monotonic() + _SETTLE_S
    while (seen := licence(conf, name))[0] != total:
        if time.monotonic() > end:
            raise SlurmError(f"slurmctld still counts with {seen[0]} {name}, and not with {total}")
        time.sleep(0.1)
    return seen[1] <= total


class Shared:
    """A pool in slurmdbd; parts are whole percents of its count."""

    def __init__(self, one: dict[str, Any]) -> None:
        self._conf: dict[str, str] = one["clusters"]
        self._keep: dict[str, int] = one.get("keep", {})
        self.taker: str = one["taker"]
        self._name, _, self._server = str(one["name"]).partition("@")
        self._whole = str(one["name"])

    def _table(self) -> tuple[int, dict[str, int]]:
        """Return the count of the pool and the percents of each cluster."""
        text = run(
            self._conf[self.taker], "sacctmgr", "-n", "-P", "show", "resource", "withclusters",
            "where", f"name={self._name}", f"server={self._server}", "format=count,cluster,allowed",
        )  # fmt: skip
        count, parts = 0, dict[str, int]()
        for line in text.splitlines():
            amount, cluster, percent = line.split("|")
            count = int(amount)
            if cluster:
                parts[cluster] = int(percent or 0)
        if not count:
            raise RefusalError(f"Error Code: UnknownItem: slurmdbd has no {self._whole}")
        return count, parts

    def level(self, cluster: str) -> int:
        """Return the percents of a cluster."""
        return self._table()[1].get(cluster, 0)

    def amount(self, percents: int) -> int:
        """Return the tokens that percents are; Slurm rounds down."""
        count, _ = self._table()
        return count * percents // 100

    def capacity(self) -> int:
        """Return the tokens of the whole pool."""
        return self._table()[0]

    def set(self, cluster: str, level: int) -> None:
        """Set the percents of a cluster."""
        if self.level(cluster) == level:
            return
        run(
            self._conf[self.taker], "sacctmgr", "-i", "-Q", "modify", "resource", "where",
            f"name={self._name}", f"server={self._server}", f"cluster={cluster}", "set", f"percentallowed={level}",
        )  # fmt: skip

    def fits(self, cluster: str, level: int) -> bool:
        """Return whether what a cluster uses is no more than a level gives it, once its slurmctld knows the level."""
        return _fits(self._conf[cluster], self._whole, self.amount(level))

    def is_too_much(self, percents: int) -> bool:
        """Return whether so many more percents cannot be: somebody else has given them away."""
        return sum(self._table()[1].values()) + percents > 100

    def use(self, cluster: str) -> int:
        """Return the tokens that jobs of a cluster hold."""
        return licence(self._conf[cluster], self._whole)[1]

    def plan(self, amount: int) -> list[dict[str, Any]]:
        """Return who gives how many percents, for at most an amount of tokens; a part nobody has comes first, without a giver."""
        count, parts = self._table()
        mine = parts.get(self.taker, 0)
        step = _percents(count, mine, amount)
        steps: list[dict[str, Any]] = []
        nobody = min(step, 100 - sum(parts.values()))
        if nobody > 0:
            steps.append({"giver": None, "percents": nobody})
            step -= nobody
        for cluster in sorted(parts):
            if cluster == self.taker or cluster not in self._conf or step < 1:
                continue
            needs = self.use(cluster) + waited_for(self._conf[cluster], self._whole)
            least = max(needs, int(self._keep.get(cluster, 0)))
            spare = parts[cluster] - -(-least * 100 // count)
            part = min(step, spare)
            if part > 0:
                steps.append({"giver": cluster, "percents": part})
                step -= part
        return steps

    def headroom(self) -> int:
        """Return the tokens that could come now."""
        count, parts = self._table()
        mine = parts.get(self.taker, 0)
        more = sum(int(one["percents"]) for one in self.plan(count))
        return count * (mine + more) // 100 - count * mine // 100


class Local:
    """An amount in ``Licenses=`` of slurm.conf: nobody gives it but the licence server, up to ``capacity``."""

    def __init__(self, one: dict[str, Any]) -> None:
        self._conf: str = one["slurmConf"]
        self._name: str = one["name"]
        self._capacity: int = one["capacity"]
        self.taker = ""

    def level(self, _cluster: str) -> int:
        """Return the amount that stands in the file."""
        found = re.search(self._entry(), self._text())
        if found is None:
            raise RefusalError(
                f"Error Code: UnknownItem: no {self._name} in Licenses= of {self._conf}"
            )
        return int(found[2])

    def _text(self) -> str:
        return Path(self._conf).read_text(encoding="utf-8")

    def _entry(self) -> str:
        return rf"(?mi)(^Licenses=(?:.*,)?{re.escape(self._name)}[:*])(\d+)"

    def amount(self, level: int) -> int:
        """Return the tokens that a level is: as many."""
        return level

    def capacity(self) -> int:
        """Return the most there may be."""
        return self._capacity

    def set(self, _cluster: str, level: int) -> None:
        """Write the amount, and let slurmctld read it."""
        place = Path(self._conf)
        new = place.with_name(place.name + ".new")
        new.write_text(re.sub(self._entry(), rf"\g<1>{level}", self._text()), encoding="utf-8")
        shutil.copymode(place, new)
        new.replace(place)
        run(self._conf, "scontrol", "reconfigure")

    def fits(self, _cluster: str, level: int) -> bool:
        """Return whether what is used is no more than a level, once slurmctld knows the level."""
        return _fits(self._conf, self._name, level)

    def is_too_much(self, more: int) -> bool:
        """Return whether so many more cannot be."""
        return self.level("") + more > self._capacity

    def use(self, _cluster: str) -> int:
        """Return the tokens that jobs hold."""
        return licence(self._conf, self._name)[1]

    def plan(self, amount: int) -> list[dict[str, Any]]:
        """Return one step without a giver, up to the capacity."""
        more = min(amount, self._capacity - self.level(""))
        return [{"giver": None, "percents": more}] if more > 0 else []

    def headroom(self) -> int:
        """Return the tokens that could come now."""
        return max(0, self._capacity - self.level(""))


def _percents(count: int, mine: int, amount: int) -> int:
    """Return the fewest percents that bring the most tokens up to an amount."""
    had = count * mine // 100
    best = more = 0
    for percents in range(1, 101 - mine):
        now = count * (mine + percents) // 100 - had
        if now > amount:
            break
        if now > more:
            best, more = percents, now
    return best
