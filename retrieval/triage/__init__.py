"""The admin's pages about tickets that are alike: panel, form check, inbox of duplicates, incidents.

Each module is a mixin of the ticket admin and brings its own addresses; `retrieval.admin` puts them together.
"""
