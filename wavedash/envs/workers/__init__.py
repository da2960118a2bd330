"""Worker processes: one supervisor that starts them, talks to them, notices their deaths and replaces them.

It knows nothing of what a worker computes. A user of it brings a job (called in the worker, it returns the `Program` that
answers commands) and handles the news: answers, and failures, of which it says where the worker was.
"""
