"""The embedded document store, put together from its parts."""

from __future__ import annotations

from storage.sqlite.checks import CheckTables
from storage.sqlite.deletion import DeletionTables
from storage.sqlite.index_state import IndexStateTables
from storage.sqlite.messages import MessageTables
from storage.sqlite.profiles import ProfileTables
from storage.sqlite.resources import ResourceTables
from storage.sqlite.rows import RowTables


class SqliteDocuments(
    MessageTables, DeletionTables, ProfileTables, RowTables, IndexStateTables, ResourceTables, CheckTables
):
    """One tenant's rows; see storage.ports.Documents, which it implements."""
