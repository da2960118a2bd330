"""Action parsers: they turn what a policy chooses into the controls of a car. Most bots use `LookupTable`."""
from wavedash.rocket.actions.continuous import Continuous as Continuous
from wavedash.rocket.actions.lookup_table import LookupTable as LookupTable
from wavedash.rocket.actions.multi_discrete import MultiDiscrete as MultiDiscrete
