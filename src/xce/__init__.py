"""xce: automatic resource provisioning for batch clusters.

What an embedding program needs is listed in ``__all__`` and loaded on first use, so that
``import xce.domain...`` never pulls in an adapter.
"""

from importlib import import_module
from typing import Any

_EXPORTS: dict[str, str] = {}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'xce' has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
