"""The configuration to begin with."""

from typing import Any, Final

#: ``clusters``: the slurm.conf of each cluster of the pool; ``keep``: tokens that a giver keeps, used or not.
CONF: Final[dict[str, Any]] = {
    "licences": [
        {
            "name": "tool@server",
            "taker": "a",
            "clusters": {"a": "/etc/slurm/slurm.conf", "b": "/etc/slurm-b/slurm.conf"},
            "keep": {"b": 10},
        }
    ],
}
