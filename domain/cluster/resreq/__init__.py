"""The requirement language: ``parse`` reads a text into a ``Requirement``, ``write`` is its inverse."""

from xce.domain.cluster.resreq.reading import parse
from xce.domain.cluster.resreq.writing import write

__all__ = ["parse", "write"]
