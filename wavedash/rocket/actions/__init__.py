"""From what a policy chooses to the controls of a car. `LookupTable` is what most bots use."""
from wavedash.rocket.actions.continuous import Continuous as Continuous
from wavedash.rocket.actions.lookup_table import LookupTable as LookupTable
from wavedash.rocket.actions.multi_discrete import MultiDiscrete as MultiDiscrete
