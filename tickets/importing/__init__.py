"""Tickets from a file: CSV or JSON Lines, row by row, in bounded memory, to be resumed where it stopped.

How far a file was read is stored with its hash in the transaction that stores its tickets: whatever stops an
import, the same command goes on behind the last stored row and never creates a ticket twice. A row that
cannot become a ticket is reported with its line and the reason, and the others go in.
"""

from .builder import column_names
from .run import import_tickets
from .terms import FIELDS, ImportRefused, Options, Rejected, Result

__all__ = ["FIELDS", "ImportRefused", "Options", "Rejected", "Result", "column_names", "import_tickets"]
