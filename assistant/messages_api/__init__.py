"""A strict local server for the Messages API: the rehearsal model and the tests speak through it.

It rejects what the real API rejects, so that a request that passes here is fit to be sent there.
Rules cite where they are known from; "docs" means platform.claude.com/docs, "seen" an error message
that the real API has been reported to give.
"""
