"""The page: a server that shows runs and games in the browser, and steers a run for whoever has the token.

It reads run folders and never writes into them; what changes a run goes through its inbox, as `wavedash set` does. So the page
may be started, killed and started again at any time, and a finished run shows the same as one that runs.
"""
