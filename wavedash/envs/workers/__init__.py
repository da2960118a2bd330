"""Worker processes: one supervisor that starts them, talks to them, notices their deaths and replaces them.

The supervisor does not know what a worker computes. Its user brings a job, which is called in the worker and returns the
`Program` that answers commands, and handles the news: answers and failures.
"""
