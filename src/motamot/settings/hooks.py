"""A function that settings name: `module:function`, or `file.py:function` with a file beside the settings."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from motamot.errors import SettingsError

__all__ = ["check_hook", "hook"]


def check_hook(named: str) -> None:
    """Raises SettingsError for what names no function. Nothing is imported."""
    module, colon, function = named.rpartition(":")
    if not colon or not module or not function.isidentifier():
        raise SettingsError('name it as "module:function", or "file.py:function" for a file beside the settings')


def hook(named: str) -> Any:
    """The function of that name. Runs its module. Raises: SettingsError, in words."""
    check_hook(named)
    where, _, name = named.rpartition(":")
    try:
        module = _of_file(Path(where).absolute()) if where.endswith(".py") else importlib.import_module(where)
    except Exception as error:
        raise SettingsError(f"{named}: {where} cannot be loaded: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not callable(found):
        raise SettingsError(f"{named}: {where} has no function {name!r}")
    return found


@cache
def _of_file(path: Path) -> ModuleType:
    """Run once, as a module that is imported: several assistants share what it holds."""
    name = f"motamot_hook_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
