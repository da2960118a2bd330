"""How good a policy is: whole episodes of its own task, matches against others, shares and means with their intervals."""
