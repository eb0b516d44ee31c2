"""The scripted model: a model server that plays scripts, for tests and examinations."""

from motamot.scripted.loading import load_scripts
from motamot.scripted.model import ScriptedModel, ThreadedScriptedModel, scripted_model
from motamot.scripted.records import Piece, Received
from motamot.scripted.script import Scripts

__all__ = [
    "Piece",
    "Received",
    "ScriptedModel",
    "Scripts",
    "ThreadedScriptedModel",
    "load_scripts",
    "scripted_model",
]
