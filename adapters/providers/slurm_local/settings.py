"""The configuration to begin with, and the records that slurm.conf needs so that jobs for hosts that do not exist yet may wait."""

import socket
from collections.abc import Iterator
from typing import Any, Final

from xce.adapters.providers.slurm_local.scripts import names_of

#: Two kinds of host in eight records.
CONF: Final[dict[str, Any]] = {
    "slurmConf": "/etc/slurm/slurm.conf",
    "templates": [
        {
            "templateId": "small",
            "nodes": "small[1-4]",
            "port": 17001,
            "cpus": 2,
            "memory": 2000,
            "features": ["small"],
            "price": "0.10",
        },
        {
            "templateId": "large",
            "nodes": "large[1-4]",
            "port": 17011,
            "cpus": 8,
            "memory": 8000,
            "features": ["large"],
            "price": "0.40",
        },
    ],
}


def records(conf: dict[str, Any], host: str | None = None) -> Iterator[str]:
    """Yield the lines of a configuration of ``slurm-local``: one record for each host there may ever be of a template.

    A template without ``port`` is for machines of their own: its records have no address here.
    """
    name = host or socket.gethostname().split(".")[0]
    for one in conf["templates"]:
        words = [f"NodeName={one['nodes']}"]
        if "port" in one:
            first, count = int(one["port"]), len(names_of(one["nodes"]))
            ports = f"[{first}-{first + count - 1}]" if count > 1 else str(first)
            words += [f"NodeHostname={name}", "NodeAddr=127.0.0.1", f"Port={ports}"]
        words += [f"CPUs={one['cpus']}", f"RealMemory={one['memory']}"]
        if features := one.get("features"):
            words.append(f"Feature={','.join(features)}")
        if generic := one.get("gres"):
            words.append("Gres=" + ",".join(f"{key}:{amount}" for key, amount in generic.items()))
        yield " ".join([*words, "State=FUTURE"])
