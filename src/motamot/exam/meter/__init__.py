"""A pass-through before a model that counts its completions and says which of them belong to one exchange."""

from motamot.exam.meter.exchanges import Exchanges, Kind, Metered
from motamot.exam.meter.tunnel import Meter

__all__ = ["Exchanges", "Kind", "Meter", "Metered"]
