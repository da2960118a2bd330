"""Evaluation of policies: whole episodes of their own task, matches against others, shares and means with intervals."""
