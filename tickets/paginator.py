from typing import Any

from django.core.paginator import Paginator
from django.utils.functional import cached_property


class BoundedPaginator(Paginator):
    """Counts no further than `MAX_ROWS`: counting everything would read the whole table for each page.

    Who needs rows beyond that narrows the list down; `is_bounded` tells the template to say so.
    """

    MAX_ROWS = 10_000

    @cached_property
    def _counted(self) -> int:
        rows: Any = self.object_list
        return rows.order_by().values("pk")[: self.MAX_ROWS + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self._counted, self.MAX_ROWS)

    @property
    def is_bounded(self) -> bool:
        return self._counted > self.MAX_ROWS
