"""The rehearsal model: a scripted stand-in for Claude that speaks the Messages API.

It follows a handful of simple rules over the conversation it is sent. It knows no ticket of its own and
says only what the tools have returned. Its sentences are a model's output, not the interface's, so they
are written here in both languages and are not translated by gettext.
"""
