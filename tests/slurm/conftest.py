"""What a source says is looked at here, whatever other tests have made of logging."""

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def all_that_is_said() -> Iterator[None]:
    """Let every line through for a test."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET))
    yield
    structlog.reset_defaults()
