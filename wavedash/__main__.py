"""`python -m wavedash`: the command line where the `wavedash` script is not on the path."""
from wavedash.import_path import forget_first_folder

forget_first_folder()

from wavedash.cli import main  # noqa: E402 (not before it is settled where modules are looked for)

main()
