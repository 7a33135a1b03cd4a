"""A process that appends without end and says on stdout what was acknowledged, until somebody kills it."""

import sys

from tests.stories import Story
from xce.adapters.store.open import open_log


def main(path: str) -> None:
    """Tell the story again and again under other names; after each append print the head's position."""
    with open_log(path) as log:
        number = sum(
            1 for recorded in log.read() if recorded.event.originator_id.startswith("provider:aws")
        )
        while True:
            number += 1
            for step in Story(log, f"-{number}").steps():
                step()
                print(log.head(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
