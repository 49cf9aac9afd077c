"""Who may do what to a ledger in PostgreSQL: the documented roles, the statements that make them, and any deviations.

A role is recognised by its rights, not by its name: a role that may append is a writer. `find_rights_problems` asks the
server what each role can really do, however it got there.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection, text

from ratings_ledger.ledger.store.dialect import NAME, PREFIX, Grants, RightsProblem
from ratings_ledger.ledger.store.postgres_catalogue import plain_path

# besides reading, what each role may do to which tables; all else is reserved for the owner
_STANDINGS = [
    "generations", "generation_ladders", "generation_standings", "live_generation", "runs", "live_history",
    "history_parts", "history_changes", "history_games", "history_participants",
]  # fmt: skip
WRITES: dict[str, dict[str, tuple[str, ...]]] = {
    "writer": {"events": ("INSERT",)},
    "rebuilder": dict.fromkeys(_STANDINGS, ("INSERT", "UPDATE", "DELETE")),
}
DOES = {"writer": "append", "rebuilder": "store standings"}
# what a role sees that must not see any event
DASHBOARD = ("live_changes", "live_games", "live_info", "live_ladders", "live_participants", "live_standings")
# what nobody but the owner changes
KEPT = ("alembic_version", "events_readable", "ledger_identity")

_READING = ("writer", "rebuilder", "reader")
_PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
_OF_COLUMNS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
PUBLIC = "PUBLIC"
ROLES_PAGE = "as docs/postgresql.md has it: ratings grants --sql"


def grant_statements(database: str, prefix: str = PREFIX) -> Grants:
    """Return the statements that make a ledger's roles and give them their rights, for a database of its own."""
    roles = [f"{prefix}{name}" for name in ("owner", *_READING, "dashboard")]
    owner, readers, used = roles[0], ", ".join(roles[1:4]), ", ".join(roles[1:])
    named = _quoted(database)
    writes = [
        f"GRANT {rights} ON {', '.join(f'public.{table}' for table in tables)} TO {prefix}{role}"
        for role in WRITES
        for rights, tables in _together(WRITES[role])
    ]
    return Grants(
        [
            *(f"CREATE ROLE {role} LOGIN" for role in roles),
            f"CREATE DATABASE {named} OWNER {owner} ENCODING 'UTF8' TEMPLATE template0",
        ],
        [
            f"REVOKE ALL ON DATABASE {named} FROM PUBLIC",
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
            f"GRANT CONNECT ON DATABASE {named} TO {used}",
            f"GRANT USAGE ON SCHEMA public TO {used}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {readers}",
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public GRANT SELECT ON TABLES TO {readers}",
            *writes,
            f"GRANT SELECT ON {', '.join(f'public.{view}' for view in DASHBOARD)} TO {roles[4]}",
        ],
    )


def _quoted(name: str, always: bool = False) -> str:
    return name if NAME.fullmatch(name) and not always else '"' + name.replace('"', '""') + '"'


def find_rights_problems(connection: Connection) -> tuple[str, list[RightsProblem]]:
    """Return who asks, and who has a right too many or lacks one."""
    schema = connection.exec_driver_sql(_WHERE).scalar_one()
    with plain_path(connection):
        who, is_superuser, database = connection.exec_driver_sql(_ASKING).one()
        server = _Server(connection, schema, database, who)
    found = [RightsProblem(who, "is a superuser, whom no right and no guard binds", ROLES_PAGE)] if is_superuser else []
    found += [*server.of_owner(), *server.of_public()]
    for role in server.roles:
        found += server.of_role(role)
    return who, found


def read_change_rights(connection: Connection) -> tuple[str, str, bool]:
    """Return who asks, who may change the tables, and whether whoever asks may, too."""
    schema = connection.exec_driver_sql(_WHERE).scalar_one()
    with plain_path(connection):
        asked = {"schema": schema, "tables": [*tables_named(), *DASHBOARD]}
        user, owners, may = connection.execute(text(_CHANGING), asked).one()
    return user, ", ".join(owners), may


def describe_missing_rights(connection: Connection, role: str) -> str:
    """Return what whoever asks lacks for doing what a role does, in words; empty if nothing."""
    missing = {
        table: [
            right for right in rights if not connection.execute(text(_MAY), {"table": table, "right": right}).scalar()
        ]
        for table, rights in _wanted([role]).items()
    }
    told = [f"{rights} on {', '.join(tables)}" for rights, tables in _together(missing)]
    return f"this user lacks {'; '.join(told)}, which {PREFIX}{role} has, {ROLES_PAGE}" if told else ""


def _wanted(roles: Iterable[str]) -> dict[str, set[str]]:
    """Return the rights that the work of these roles needs, by table; all but a dashboard read everything."""
    writes = [(table, rights) for role in roles for table, rights in WRITES[role].items()]
    wanted = {table: {"SELECT"} for table in (*(table for table, _ in writes), *tables_named(), *DASHBOARD)}
    for table, rights in writes:
        wanted[table].update(rights)
    return wanted


_MAY = """SELECT pg_catalog.has_table_privilege(pg_catalog.to_regclass(CAST(:table AS pg_catalog.text)),
  CAST(:right AS pg_catalog.text))"""
_WHERE = "SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = 'events'::pg_catalog.regclass"
_ASKING = "SELECT rolname, rolsuper, current_database() FROM pg_roles WHERE rolname = current_user"
# what roles that are not owners can do, in whatever way; `public` stands for everybody
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
# who was granted a right on one of our tables: the ledger's roles; all others are the server's
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


class _Server:
    """What a server says about the rights on the ledger in one of its schemas."""

    def __init__(self, connection: Connection, schema: int, database: str, who: str) -> None:
        self.database = _quoted(database)
        given = {"schema": schema, "tables": [*tables_named(), *DASHBOARD]}
        owners = connection.execute(text(_OWNERS), given).all()
        self.owners: dict[str, str] = {row[0]: row[1] for row in owners}
        self.owner = Counter(self.owners.values()).most_common(1)[0][0]
        self.granted = {(*row,) for row in connection.execute(text(_GRANTED), given)}
        # by role, table and right
        self.can: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        roles = sorted({who, *(row[0] for row in self.granted)})
        asked = {**given, "roles": roles, "privileges": list(_PRIVILEGES), "of_columns": list(_OF_COLUMNS)}
        for role, table, privilege in connection.execute(text(_TABLES), asked):
            self.can[role][table].add(privilege)
        self.everybody = self.can.pop("public", {})
        where = {"schema": schema, "owner": _quoted(self.owner, always=True), "roles": roles}
        self.elsewhere = {row[0]: row[1:] for row in connection.execute(text(_ELSEWHERE), where)}
        self.roles = sorted(self.elsewhere)
        *self.open, self.schema = connection.execute(text(_EVERYBODY), {"schema": schema}).one()

    def of_owner(self) -> Iterator[RightsProblem]:
        """Yield whether everything belongs to one role, which leaves the daily work to others."""
        for name, owner in self.owners.items():
            if owner != self.owner:
                remedy = f"ALTER TABLE {self.schema}.{name} OWNER TO {_quoted(self.owner)}"
                yield RightsProblem(owner, f"owns {name}, while {self.owner} owns the rest", remedy)
        for role, does in DOES.items():
            if not any(right in WRITES[role].get(table, ()) for _, table, right in self.granted):
                told = f"owns the ledger and can switch its guards off, and nobody else may {does}"
                yield RightsProblem(self.owner, told, ROLES_PAGE)

    def of_public(self) -> Iterator[RightsProblem]:
        """Yield what everybody who can log in to the server may do."""
        for may, what, right in zip(
            self.open,
            ("connect to the database", "make temporary tables, which can stand before ours", "make schemas",
             f"make objects in the schema {self.schema}"),
            ("ALL ON DATABASE", "ALL ON DATABASE", "ALL ON DATABASE", f"CREATE ON SCHEMA {self.schema}"),
            strict=True,
        ):  # fmt: skip
            if may:
                named = f"{right} {self.database}" if right.endswith("DATABASE") else right
                yield RightsProblem(PUBLIC, f"may {what}", f"REVOKE {named} FROM PUBLIC")
        for rights, tables in _together(self.everybody):
            yield RightsProblem(
                PUBLIC, f"may {rights} on {', '.join(tables)}", f"REVOKE ALL ON {self._all(tables)} FROM PUBLIC"
            )

    def of_role(self, role: str) -> Iterator[RightsProblem]:
        """Yield what a role may do that it should not, and what it lacks for its purpose."""
        # a role is of a kind if it may do something that only a role of this kind may
        can = self.can[role]
        kinds = [
            kind
            for kind, tables in WRITES.items()
            if any(can.get(table, set()) & {*may} for table, may in tables.items())
        ]
        yield from self._too_much(role)
        yield from self._elsewhere(role, bool(kinds))
        reads = kinds or "SELECT" in can.get("events", ())
        missing = {
            table: rights - can.get(table, set()) - self.everybody.get(table, set())
            for table, rights in (_wanted(kinds) if reads else {}).items()
            if table in self.owners
        }
        for rights, tables in _together(missing):
            grant = f"GRANT {rights} ON {self._all(tables)} TO {_quoted(role)}"
            yield RightsProblem(role, f"lacks {rights} on {', '.join(tables)}", grant)

    def _all(self, tables: Iterable[str]) -> str:
        return ", ".join(f"{self.schema}.{table}" for table in tables)

    def _too_much(self, role: str) -> Iterator[RightsProblem]:
        over: dict[bool, dict[str, set[str]]] = {True: {}, False: {}}
        for table, rights in sorted(self.can[role].items()):
            allowed = {"SELECT"}.union(*(tables.get(table, ()) for tables in WRITES.values()))
            too_much = rights - allowed - self.everybody.get(table, set())
            own = {right for right in too_much if (role, table, right) in self.granted}
            over[True][table], over[False][table] = own, too_much - own
        for granted, found in over.items():
            for told, tables in _together(found):
                revoke = f"REVOKE {told} ON {self._all(tables)} FROM {_quoted(role)}"
                member = f"it comes from a role that {role} is a member of: remove it from that"
                yield RightsProblem(role, f"may {told} on {', '.join(tables)}", revoke if granted else member)

    def _elsewhere(self, role: str, writes: bool) -> Iterator[RightsProblem]:
        """Rights elsewhere that let a role get more, and rights it needs to get here."""
        logs_in, makes_roles, connects, temporary, usage, creates, may_be_owner = self.elsewhere[role]
        name, own = _quoted(role), any(role == row[0] for row in self.granted)
        for wrong, what, remedy in (
            (may_be_owner and own, f"may become {self.owner}, who owns the ledger",
             f"REVOKE {_quoted(self.owner)} FROM {name}"),
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


def _together(tables: Mapping[str, Collection[str]]) -> Iterator[tuple[str, list[str]]]:
    """Rights as they are listed, each with the tables it is on; without those that are on none."""
    found: dict[str, list[str]] = defaultdict(list)
    for table, rights in tables.items():
        if rights:
            found[", ".join(right for right in _PRIVILEGES if right in rights)].append(table)
    yield from found.items()


def tables_named() -> Sequence[str]:
    """Return the tables and views that a role that reads everything sees, except a dashboard's."""
    return [*(table for tables in WRITES.values() for table in tables), *KEPT]
