"""Rights on a ledger in PostgreSQL: the documented roles, the statements that create them, and deviations from them.

A role is recognised by its rights, not by its name: a role that may append is a writer. `find_rights_problems` asks the
server what each role can really do, however it got there.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection, text

from ratings_ledger.ledger.store.dialect import NAME, PREFIX, Grants, RightsProblem
from ratings_ledger.ledger.store.postgres_catalogue import plain_path

# the rights of each role besides reading; all others are the owner's
_STANDINGS = [
    "generations",
    "generation_ladders",
    "generation_standings",
    "live_generation",
    "runs",
    "live_history",
    "history_parts",
    "history_changes",
    "history_games",
    "history_participants",
]
WRITES: dict[str, dict[str, tuple[str, ...]]] = {
    "writer": {"events": ("INSERT",)},
    "rebuilder": dict.fromkeys(_STANDINGS, ("INSERT", "UPDATE", "DELETE")),
}
DOES = {"writer": "append", "rebuilder": "store standings"}
# the views of a role that must not see any event
DASHBOARD = ("live_changes", "live_games", "live_info", "live_ladders", "live_participants", "live_standings")
# tables and views that only the owner changes
KEPT = ("alembic_version", "events_readable", "ledger_identity")

_READING = ("writer", "rebuilder", "reader")
_PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
_OF_COLUMNS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
PUBLIC = "PUBLIC"
ROLES_PAGE = "as docs/postgresql.md has it: ratings grants --sql"


def grant_statements(database: str, prefix: str = PREFIX) -> Grants:
    """Return the statements that create a ledger's roles and grant their rights, for a database of its own."""
    roles = [f"{prefix}{name}" for name in ("owner", *_READING, "dashboard")]
    owner, readers, users = roles[0], ", ".join(roles[1:4]), ", ".join(roles[1:])
    database_name = _quote_name(database)
    write_grants = [
        f"GRANT {rights} ON {', '.join(f'public.{table}' for table in tables)} TO {prefix}{role}"
        for role in WRITES
        for rights, tables in _group_by_rights(WRITES[role])
    ]
    return Grants(
        [
            *(f"CREATE ROLE {role} LOGIN" for role in roles),
            f"CREATE DATABASE {database_name} OWNER {owner} ENCODING 'UTF8' TEMPLATE template0",
        ],
        [
            f"REVOKE ALL ON DATABASE {database_name} FROM PUBLIC",
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
            f"GRANT CONNECT ON DATABASE {database_name} TO {users}",
            f"GRANT USAGE ON SCHEMA public TO {users}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {readers}",
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public GRANT SELECT ON TABLES TO {readers}",
            *write_grants,
            f"GRANT SELECT ON {', '.join(f'public.{view}' for view in DASHBOARD)} TO {roles[4]}",
        ],
    )


def _quote_name(name: str, always: bool = False) -> str:
    return name if NAME.fullmatch(name) and not always else '"' + name.replace('"', '""') + '"'


def find_rights_problems(connection: Connection) -> tuple[str, list[RightsProblem]]:
    """Return the current user, and the excess and missing rights of all users."""
    schema = connection.exec_driver_sql(_WHERE).scalar_one()
    with plain_path(connection):
        user, is_superuser, database = connection.exec_driver_sql(_ASKING).one()
        server = _ServerRights(connection, schema, database, user)
    problems = (
        [RightsProblem(user, "is a superuser, who bypasses all rights and guards", ROLES_PAGE)] if is_superuser else []
    )
    problems += [*server.check_owner(), *server.check_public()]
    for role in server.roles:
        problems += server.check_role(role)
    return user, problems


def read_change_rights(connection: Connection) -> tuple[str, str, bool]:
    """Return the current user, the owners of the tables, and whether the current user may change them."""
    schema = connection.exec_driver_sql(_WHERE).scalar_one()
    with plain_path(connection):
        parameters = {"schema": schema, "tables": [*readable_tables(), *DASHBOARD]}
        user, owners, may = connection.execute(text(_CHANGING), parameters).one()
    return user, ", ".join(owners), may


def describe_missing_rights(connection: Connection, role: str) -> str:
    """Describe the rights that the current user lacks for the work of a role; empty if none is missing."""
    missing = {
        table: [
            right for right in rights if not connection.execute(text(_MAY), {"table": table, "right": right}).scalar()
        ]
        for table, rights in _required_rights([role]).items()
    }
    listed = [f"{rights} on {', '.join(tables)}" for rights, tables in _group_by_rights(missing)]
    return f"this user lacks {'; '.join(listed)}, which {PREFIX}{role} has, {ROLES_PAGE}" if listed else ""


def _required_rights(roles: Iterable[str]) -> dict[str, set[str]]:
    """Return the rights that the work of these roles needs, by table; all except dashboards read everything."""
    writes = [(table, rights) for role in roles for table, rights in WRITES[role].items()]
    required = {table: {"SELECT"} for table in (*(table for table, _ in writes), *readable_tables(), *DASHBOARD)}
    for table, rights in writes:
        required[table].update(rights)
    return required


_MAY = """SELECT pg_catalog.has_table_privilege(pg_catalog.to_regclass(CAST(:table AS pg_catalog.text)),
  CAST(:right AS pg_catalog.text))"""
_WHERE = "SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = 'events'::pg_catalog.regclass"
_ASKING = "SELECT rolname, rolsuper, current_database() FROM pg_roles WHERE rolname = current_user"
# the effective rights of roles that are not owners, however granted; `public` stands for all users
_TABLES = """WITH ours AS (
  SELECT c.oid, c.relname, c.relowner FROM pg_class c
  WHERE c.relnamespace = :schema AND c.relname = ANY(:tables) AND c.relkind IN ('r', 'v')
), roles AS (
  SELECT 'public' AS name, NULL::oid AS oid
  UNION ALL SELECT rolname, oid FROM pg_roles WHERE rolname = ANY(:roles)
)
SELECT roles.name, ours.relname, wanted.privilege FROM roles CROSS JOIN ours CROSS JOIN
  unnest(CAST(:privileges AS text[])) AS wanted (privilege)
WHERE CASE WHEN roles.oid IS NULL THEN true ELSE NOT pg_has_role(roles.oid, ours.relowner, 'USAGE') END
  AND CASE WHEN wanted.privilege = ANY(:of_columns)
      THEN has_any_column_privilege(roles.name, ours.oid, wanted.privilege)
      ELSE has_table_privilege(roles.name, ours.oid, wanted.privilege) END"""
# the roles with a granted right on one of our tables are the ledger's; all others are the server's
_GRANTED = """SELECT r.rolname, c.relname, a.privilege_type
FROM pg_class c
CROSS JOIN LATERAL (
  SELECT c.relacl AS acl UNION ALL SELECT t.attacl FROM pg_attribute t WHERE t.attrelid = c.oid
) AS given
CROSS JOIN LATERAL aclexplode(given.acl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE c.relnamespace = :schema AND c.relname = ANY(:tables) AND NOT r.rolsuper AND a.grantee <> c.relowner"""
_OWNERS = """SELECT c.relname, r.rolname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
WHERE c.relnamespace = :schema AND c.relname = ANY(:tables) ORDER BY c.relname"""
_CHANGING = """SELECT current_user, array_agg(DISTINCT r.rolname), bool_and(pg_has_role(c.relowner, 'USAGE'))
FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE c.relnamespace = :schema AND c.relname = ANY(:tables)"""
_ELSEWHERE = """SELECT r.rolname, r.rolcanlogin, r.rolcreaterole,
  has_database_privilege(r.oid, current_database(), 'CONNECT'),
  has_database_privilege(r.oid, current_database(), 'TEMP'),
  has_schema_privilege(r.oid, CAST(:schema AS oid), 'USAGE'),
  has_schema_privilege(r.oid, CAST(:schema AS oid), 'CREATE'),
  pg_has_role(r.oid, CAST(:owner AS regrole), 'MEMBER')
FROM pg_roles r WHERE r.rolname = ANY(:roles) AND NOT r.rolsuper AND r.oid <> CAST(:owner AS regrole)"""
_EVERYBODY = """SELECT has_database_privilege('public', current_database(), 'CONNECT'),
  has_database_privilege('public', current_database(), 'TEMP'),
  has_database_privilege('public', current_database(), 'CREATE'),
  has_schema_privilege('public', CAST(:schema AS oid), 'CREATE'),
  (SELECT quote_ident(nspname) FROM pg_namespace WHERE oid = :schema)"""


class _ServerRights:
    """The rights on the ledger in one schema of a server."""

    def __init__(self, connection: Connection, schema: int, database: str, user: str) -> None:
        self.database = _quote_name(database)
        parameters = {"schema": schema, "tables": [*readable_tables(), *DASHBOARD]}
        owners = connection.execute(text(_OWNERS), parameters).all()
        self.owners: dict[str, str] = {row[0]: row[1] for row in owners}
        self.owner = Counter(self.owners.values()).most_common(1)[0][0]
        self.granted = {(*row,) for row in connection.execute(text(_GRANTED), parameters)}
        # by role, table and right
        self.can: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        roles = sorted({user, *(row[0] for row in self.granted)})
        role_parameters = {
            **parameters,
            "roles": roles,
            "privileges": list(_PRIVILEGES),
            "of_columns": list(_OF_COLUMNS),
        }
        for role, table, privilege in connection.execute(text(_TABLES), role_parameters):
            self.can[role][table].add(privilege)
        self.everybody = self.can.pop("public", {})
        owner_parameters = {"schema": schema, "owner": _quote_name(self.owner, always=True), "roles": roles}
        self.elsewhere = {row[0]: row[1:] for row in connection.execute(text(_ELSEWHERE), owner_parameters)}
        self.roles = sorted(self.elsewhere)
        *self.open, self.schema = connection.execute(text(_EVERYBODY), {"schema": schema}).one()

    def check_owner(self) -> Iterator[RightsProblem]:
        """Check that all tables belong to one role, which leaves the daily work to others."""
        for name, owner in self.owners.items():
            if owner != self.owner:
                remedy = f"ALTER TABLE {self.schema}.{name} OWNER TO {_quote_name(self.owner)}"
                yield RightsProblem(owner, f"owns {name}, while {self.owner} owns the rest", remedy)
        for role, does in DOES.items():
            if not any(right in WRITES[role].get(table, ()) for _, table, right in self.granted):
                message = f"owns the ledger and can switch its guards off, and no other role may {does}"
                yield RightsProblem(self.owner, message, ROLES_PAGE)

    def check_public(self) -> Iterator[RightsProblem]:
        """Check the rights of PUBLIC, which all users of the server have."""
        database_rights, schema_right = f"ALL ON DATABASE {self.database}", f"CREATE ON SCHEMA {self.schema}"
        possible = (
            ("connect to the database", database_rights),
            ("make temporary tables, which can stand before ours", database_rights),
            ("make schemas", database_rights),
            (f"make objects in the schema {self.schema}", schema_right),
        )
        for may, (action, rights) in zip(self.open, possible, strict=True):
            if may:
                yield RightsProblem(PUBLIC, f"may {action}", f"REVOKE {rights} FROM PUBLIC")
        for rights, tables in _group_by_rights(self.everybody):
            yield RightsProblem(
                PUBLIC, f"may {rights} on {', '.join(tables)}", f"REVOKE ALL ON {self._list_tables(tables)} FROM PUBLIC"
            )

    def check_role(self, role: str) -> Iterator[RightsProblem]:
        """Check a role for excess rights, and for rights that it lacks for its purpose."""
        # a role is of a kind if it has a right that only this kind of role has
        can = self.can[role]
        kinds = [
            kind
            for kind, tables in WRITES.items()
            if any(can.get(table, set()) & {*may} for table, may in tables.items())
        ]
        yield from self._find_excess_rights(role)
        yield from self._check_other_rights(role, bool(kinds))
        reads = kinds or "SELECT" in can.get("events", ())
        missing = {
            table: rights - can.get(table, set()) - self.everybody.get(table, set())
            for table, rights in (_required_rights(kinds) if reads else {}).items()
            if table in self.owners
        }
        for rights, tables in _group_by_rights(missing):
            grant = f"GRANT {rights} ON {self._list_tables(tables)} TO {_quote_name(role)}"
            yield RightsProblem(role, f"lacks {rights} on {', '.join(tables)}", grant)

    def _list_tables(self, tables: Iterable[str]) -> str:
        return ", ".join(f"{self.schema}.{table}" for table in tables)

    def _find_excess_rights(self, role: str) -> Iterator[RightsProblem]:
        excess: dict[bool, dict[str, set[str]]] = {True: {}, False: {}}
        for table, rights in sorted(self.can[role].items()):
            allowed = {"SELECT"}.union(*(tables.get(table, ()) for tables in WRITES.values()))
            too_much = rights - allowed - self.everybody.get(table, set())
            directly_granted = {right for right in too_much if (role, table, right) in self.granted}
            excess[True][table], excess[False][table] = directly_granted, too_much - directly_granted
        for granted, rights_by_table in excess.items():
            for rights_text, tables in _group_by_rights(rights_by_table):
                revoke = f"REVOKE {rights_text} ON {self._list_tables(tables)} FROM {_quote_name(role)}"
                member = f"it comes from a role that {role} is a member of: remove it from that"
                yield RightsProblem(role, f"may {rights_text} on {', '.join(tables)}", revoke if granted else member)

    def _check_other_rights(self, role: str, writes: bool) -> Iterator[RightsProblem]:
        """Check rights outside the tables: those that lead to further rights, and those needed to reach the tables."""
        logs_in, makes_roles, connects, temporary, usage, creates, may_be_owner = self.elsewhere[role]
        name, own = _quote_name(role), any(role == row[0] for row in self.granted)
        for wrong, what, remedy in (
            (may_be_owner and own, f"may become {self.owner}, who owns the ledger",
             f"REVOKE {_quote_name(self.owner)} FROM {name}"),
            (makes_roles and writes, "may make roles, and so give itself rights", f"ALTER ROLE {name} NOCREATEROLE"),
            (temporary and writes and not self.open[1], "may make temporary tables, which can stand before ours",
             f"REVOKE TEMPORARY ON DATABASE {self.database} FROM {name}"),
            (creates and not self.open[3], f"may make objects in the schema {self.schema}",
             f"REVOKE CREATE ON SCHEMA {self.schema} FROM {name}"),
            (logs_in and own and not connects, "lacks CONNECT on the database",
             f"GRANT CONNECT ON DATABASE {self.database} TO {name}"),
            (own and not usage, f"lacks USAGE on the schema {self.schema}",
             f"GRANT USAGE ON SCHEMA {self.schema} TO {name}"),
        ):  # fmt: skip
            if wrong:
                yield RightsProblem(role, what, remedy)


def _group_by_rights(tables: Mapping[str, Collection[str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each list of rights with the tables it applies to, leaving out tables without rights."""
    tables_by_rights: dict[str, list[str]] = defaultdict(list)
    for table, rights in tables.items():
        if rights:
            tables_by_rights[", ".join(right for right in _PRIVILEGES if right in rights)].append(table)
    yield from tables_by_rights.items()


def readable_tables() -> Sequence[str]:
    """Return the tables and views of a role that reads everything, without those of a dashboard."""
    return [*(table for tables in WRITES.values() for table in tables), *KEPT]
