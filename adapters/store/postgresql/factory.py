"""Makes the parts of a log on PostgreSQL for the library's application."""

from typing import Any

from eventsourcing.persistence import ApplicationRecorder
from eventsourcing.postgres import BasePostgresFactory, PostgresDatastore, PostgresFactory
from eventsourcing.utils import Environment
from psycopg.conninfo import conninfo_to_dict

from xce.adapters.store.postgresql.recorder import PostgresqlLogRecorder
from xce.adapters.store.postgresql.schema import open_tables
from xce.adapters.store.postgresql.sessions import Sessions


class LogPostgresqlFactory(PostgresFactory):
    """The library's factory with a recorder of ours for the events.

    The library's own recorders (snapshots, tracking) would use its datastore, whose pool opens when it is first used. Its database functions
    are never enabled: they lose events for readers and drop tracking (notes on the library, reproduced).
    """

    def __init__(self, sessions: Sessions) -> None:
        open_tables(sessions)
        # Not the base's own: that wants an address in the environment.
        super(BasePostgresFactory, self).__init__(Environment("", {self.CREATE_TABLE: "no"}))
        parts: dict[str, Any] = conninfo_to_dict(sessions.address.conninfo)
        self.datastore = PostgresDatastore(
            dbname=str(parts.get("dbname") or ""),
            host=str(parts.get("host") or ""),
            port=str(parts.get("port") or ""),
            user=str(parts.get("user") or ""),
            password=str(parts.get("password") or ""),
            schema=sessions.address.schema,
            originator_id_type="text",
            enable_db_functions=False,
        )
        self._recorder = PostgresqlLogRecorder(sessions)

    def application_recorder(self) -> ApplicationRecorder:
        """Return the recorder of the events."""
        return self._recorder

    def close(self) -> None:
        """Close all sessions; may be repeated."""
        self._recorder.close()
        super().close()
