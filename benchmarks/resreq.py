"""How fast requirements are read and written: ``python -m benchmarks.resreq``.

CPU seconds after imports. "cold" is every text read for the first time, "again" the same texts again.
The last lines show that time grows with length and no faster.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from xce.domain.cluster.resreq import parse, write
from xce.domain.errors import InputError

TEXTS: Final = 5_000

SHAPES: Final = {
    "rusage[mem=...]": "rusage[mem={}]",
    "select and two amounts": "select[type==X86_64] rusage[mem={},lic_spice=1]",
    "three sections": "select[type==X86_64 && mem>={}MiB] rusage[mem={},lic_spice=1] span[hosts=1]",
    "alternatives, compound": "{{select[gpu]}} || {{1*{{select[big && mem>={}]}} + 4*{{rusage[mem={}]}}}}",
    "wrong at the end": "select[type==X86_64] rusage[mem={},lic_spice=]",
}


def per_second(call: Callable[[str], object], texts: Iterable[str]) -> float:
    """Return calls per CPU second."""
    todo = list(texts)
    start = time.process_time()
    for text in todo:
        call(text)
    return len(todo) / max(time.process_time() - start, 1e-9)


def read(text: str) -> None:
    """Read a text that may be wrong."""
    with suppress(InputError):
        parse(text)


def main() -> None:
    """Print the figures."""
    start = time.process_time()
    parse("select[first]")
    print(f"first text (builds the parser): {time.process_time() - start:.3f} s")
    for name, shape in SHAPES.items():
        texts = [shape.format(i, i) for i in range(1, TEXTS + 1)]
        cold, cached = per_second(read, texts), per_second(read, texts)
        print(f"{name:<24} {cold:>10,.0f}/s cold {cached:>12,.0f}/s again")
    requirements = [parse(SHAPES["three sections"].format(i, i)) for i in range(1, TEXTS + 1)]
    start = time.process_time()
    for requirement in requirements:
        write(requirement)
    print(f"{'write, its text known':<24} {TEXTS / (time.process_time() - start):>10,.0f}/s")
    for terms in (300, 600, 1_200, 2_400):
        text = "select[" + " || ".join(f"(a{i}>={i} && !b)" for i in range(terms)) + "]"
        start = time.process_time()
        parse(text)
        print(f"one text of {len(text):>6,} characters: {time.process_time() - start:.4f} s")


if __name__ == "__main__":
    main()
