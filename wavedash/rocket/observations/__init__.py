"""What a policy sees of the game. Start with `AdvancedObsPlus`; `DefaultObs` runs policies that were trained with RLGym's."""
from wavedash.rocket.observations.advanced import AdvancedObsPlus as AdvancedObsPlus
from wavedash.rocket.observations.by_name import ObservationByName as ObservationByName
from wavedash.rocket.observations.default import DefaultObs as DefaultObs
