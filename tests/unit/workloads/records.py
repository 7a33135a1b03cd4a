"""Lines of the Standard Workload Format for tests."""

from pathlib import Path

#: A record in which everything is known: job 7, 30 s after the start, 600 s on 4 processors, 1 GiB each.
RECORD = "7 30 5 600 4 590 900 4 3600 1048576 1 62 1 3 2 1 -1 -1"
EXTENDED = RECORD + " {1,1,1,1} q_1d 1:ppn=4"


def changed(column: int, value: str, record: str = RECORD) -> str:
    """Return the record with another value in a column, counted from 1."""
    fields = record.split()
    fields[column - 1] = value
    return " ".join(fields)


def numbered(count: int, record: str = RECORD) -> str:
    """Return so many records, a second apart, as one text."""
    return "".join(
        changed(2, str(n), changed(1, str(n), record)) + "\n" for n in range(1, count + 1)
    )


def written(folder: Path, text: str, name: str = "trace.swf") -> Path:
    """Return the path of a new file with this text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
