"""`python -m wavedash`: the command line where the `wavedash` script is not on the path."""
from wavedash.cli import main

main()
