"""The entry point of the `wavedash` script, and of `python -m wavedash` where the script is not on the path."""
from wavedash.import_path import drop_first_folder


def main() -> None:
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback of an interrupted import
    from wavedash.cli import main

    main()


if __name__ == "__main__":
    drop_first_folder()  # before anything else is imported
    main()
