"""The YAML configuration: read, checked, and every mistake named with its line."""

from xce.adapters.settings.load import load_config

__all__ = ["load_config"]
