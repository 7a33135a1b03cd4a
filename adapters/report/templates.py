"""The templates of the pages, which share a style sheet."""

from importlib import resources
from typing import Final

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape

_FOLDER: Final = "xce.adapters.report"


def fill(template: str, **values: object) -> str:
    """Return a template with its values; a value that it wants and does not get is an error."""
    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(**values)


def _source(name: str) -> str:
    return resources.files(_FOLDER).joinpath(name).read_text(encoding="utf-8")
