"""The digest chain: each stored event carries a digest over itself and the digest of the one before.

Changing, removing, adding or exchanging stored events breaks the chain at that position, unless everything behind is made anew; and
then the head differs from one that was written down elsewhere.
"""

from hashlib import sha256
from typing import Final

#: What stands before the first event.
GENESIS: Final = sha256(b"xce log, chain 1").digest()


def link(
    previous: bytes,
    position: int,
    originator_id: str,
    originator_version: int,
    topic: str,
    state: bytes,
) -> bytes:
    """Return the SHA-256 of an event and the digest before it; lengths are in it, so no two events read the same.

    Args:
        previous: digest of the event before, or ``GENESIS``.
        position: of the event in the log.
        originator_id: of the event.
        originator_version: of the event.
        topic: stored name, with its version: see ``domain/events/stored.py``.
        state: stored bytes.
    """
    owner, name = originator_id.encode(), topic.encode()
    head = b"%d %d %d:%b %d:%b " % (
        position,
        originator_version,
        len(owner),
        owner,
        len(name),
        name,
    )
    return sha256(previous + head + state).digest()
