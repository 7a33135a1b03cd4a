"""Field case F29 as snapshots: ten thousand jobs of forty shapes, and ten thousand of one shape at a cap."""

import json
from collections.abc import Iterator
from typing import Any, cast

FOLDER = "examples/field-cases"
NOW = "2026-03-01T10:00:00Z"
JOBS = 10_000
ZONES = ("a", "b", "c")
#: Slots, and MiB a slot: 5 x 4 sizes, each with and without a zone, are 40 shapes; in 3 zones they are 60 templates.
SLOTS = (1, 2, 4, 8, 16)
MEMORY = (1024, 2048, 4096, 8192)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the two snapshots."""
    yield f"{FOLDER}/f29_a_forty_shapes.json", _text(forty_shapes())
    yield f"{FOLDER}/f29_b_one_shape_at_a_cap.json", _text(one_shape())


def forty_shapes() -> dict[str, Any]:
    """Return 10,000 jobs of 40 shapes that arrive mixed, 60 templates, 500 hosts of which half of each is in use."""
    shapes = [
        f"{select}rusage[slots={slots},mem={slots * memory}]"
        for slots in SLOTS
        for memory in MEMORY
        for select in ("", f"select[zone=={ZONES[slots % len(ZONES)]}] ")
    ]
    sizes = [(2 * slots, 2 * slots * memory) for slots in SLOTS for memory in MEMORY]
    return {
        "hosts": [
            {
                "name": f"h{n}",
                "attributes": {"zone": ZONES[n % len(ZONES)]},
                "total": {"slots": 16, "mem": 65536},
            }
            for n in range(1, 501)
        ],
        "running": [
            {
                "id": f"r{n}",
                "hosts": [{"name": f"h{n}", "tasks": 1, "uses": {"slots": 8, "mem": 32768}}],
            }
            for n in range(1, 501)
        ],
        # 7 has no factor in common with 40: every shape comes as often, next to others.
        "pending": [{"id": f"{n}", "resreq": shapes[7 * n % len(shapes)]} for n in range(JOBS)],
        "catalog": {
            "templates": [
                {
                    "id": f"t{slots}-{mem // 1024}-{zone}",
                    "attributes": {"zone": zone},
                    "provides": {"slots": slots, "mem": mem},
                    "allowed": 1000,
                    "price_per_hour": f"{slots * 0.04 + mem / 1024 * 0.005 + place * 0.001:.3f}",
                }
                for slots, mem in sizes
                for place, zone in enumerate(ZONES)
            ]
        },
    }


def one_shape() -> dict[str, Any]:
    """Return 10,000 jobs of one slot, no hosts, and one template of 16 slots with room for 300."""
    template = {"id": "T", "provides": {"slots": 16}, "allowed": 300, "price_per_hour": "0.80"}
    return {
        "pending": [{"id": f"{n}"} for n in range(1, JOBS + 1)],
        "catalog": {"templates": [template]},
    }


def _text(parts: dict[str, Any]) -> str:
    """Return a snapshot, one entry of a list a line."""
    head = {"format": "xce.snapshot/1", "now": NOW, "queues": [{"name": "normal"}]}
    lines = [f'"{name}": {json.dumps(value)}' for name, value in head.items()]
    for name, value in parts.items():
        if isinstance(value, list):
            items = cast(list[object], value)
            entries = ",\n".join(json.dumps(item, separators=(",", ":")) for item in items)
            lines.append(f'"{name}": [\n{entries}\n]')
        else:
            lines.append(f'"{name}": {json.dumps(value)}')
    return "{" + ",\n".join(lines) + "}\n"
