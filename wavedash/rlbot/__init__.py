"""RLBot: packets of the community's match runner, a match server that speaks its protocol, and exported bots."""
