"""Settings: one file, `motamot.toml`, with the environment over it. docs/settings.md explains each of them.

What a command line says goes before the environment, the environment before the file, the file before the defaults.
"""

from motamot.settings.building import DEFAULT_NAME, assistant_from, chosen, database, limits, wanted
from motamot.settings.loading import load, settings_file
from motamot.settings.schema import AssistantSettings, ServerSettings, Settings, StoreSettings

__all__ = [
    "DEFAULT_NAME",
    "AssistantSettings",
    "ServerSettings",
    "Settings",
    "StoreSettings",
    "assistant_from",
    "chosen",
    "database",
    "limits",
    "load",
    "settings_file",
    "wanted",
]
