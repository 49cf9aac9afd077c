"""Build the statements that create the PostgreSQL roles of a ledger, and check the rights of all users.

Rights, not names, define a role: a role that may append is a writer. `find_rights_problems` asks the server for the
effective rights of each role, including inherited ones.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection, text

from ratings_ledger.ledger.store.dialect import PLAIN_NAME, ROLE_PREFIX, ChangeRights, Grants, RightsProblem
from ratings_ledger.ledger.store.postgres_catalogue import use_catalogue_path

# the tables that a rebuild writes
_REBUILT_TABLES = [
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
# by role and table: the rights in addition to SELECT; only the owner has further rights
WRITE_RIGHTS: dict[str, dict[str, tuple[str, ...]]] = {
    "writer": {"events": ("INSERT",)},
    "rebuilder": dict.fromkeys(_REBUILT_TABLES, ("INSERT", "UPDATE", "DELETE")),
}
# a verb for the work of each role, for messages
_WORK = {"writer": "append", "rebuilder": "store standings"}
# the views of the role for dashboards, which must not read events
DASHBOARD_VIEWS = ("live_changes", "live_games", "live_info", "live_ladders", "live_participants", "live_standings")
# tables and views that only the owner may change
OWNER_ONLY = ("alembic_version", "events_readable", "ledger_identity")

# the roles that read everything
_READERS = ("writer", "rebuilder", "reader")
_PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
# the privileges that can be granted on single columns
_COLUMN_PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
PUBLIC = "PUBLIC"
_SHADOWING = "temporary tables, which can shadow the ledger's tables"
_ROLES_REMEDY = "set up the roles of docs/postgresql.md: ratings grants --sql"


def build_grant_statements(database: str, prefix: str = ROLE_PREFIX) -> Grants:
    """Return the statements that create a database for a ledger, and its roles with their rights."""
    roles = [f"{prefix}{name}" for name in ("owner", *_READERS, "dashboard")]
    owner, readers, users = roles[0], ", ".join(roles[1:4]), ", ".join(roles[1:])
    database_name = _quote_name(database)
    write_grants = [
        f"GRANT {rights} ON {', '.join(f'public.{table}' for table in tables)} TO {prefix}{role}"
        for role in WRITE_RIGHTS
        for rights, tables in _group_by_rights(WRITE_RIGHTS[role])
    ]
    return Grants(
        administrator=[
            *(f"CREATE ROLE {role} LOGIN" for role in roles),
            f"CREATE DATABASE {database_name} OWNER {owner} ENCODING 'UTF8' TEMPLATE template0",
        ],
        owner=[
            f"REVOKE ALL ON DATABASE {database_name} FROM PUBLIC",
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
            f"GRANT CONNECT ON DATABASE {database_name} TO {users}",
            f"GRANT USAGE ON SCHEMA public TO {users}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {readers}",
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public GRANT SELECT ON TABLES TO {readers}",
            *write_grants,
            f"GRANT SELECT ON {', '.join(f'public.{view}' for view in DASHBOARD_VIEWS)} TO {roles[4]}",
        ],
    )


def _quote_name(name: str, always: bool = False) -> str:
    return name if PLAIN_NAME.fullmatch(name) and not always else '"' + name.replace('"', '""') + '"'


def find_rights_problems(connection: Connection) -> tuple[str, list[RightsProblem]]:
    """Return the current user, and the problems with the rights of all users."""
    schema = connection.exec_driver_sql(_SCHEMA).scalar_one()
    with use_catalogue_path(connection):
        user, is_superuser, database = connection.exec_driver_sql(_CURRENT_USER).one()
        server = _ServerRights(connection, schema, database, user)
    problems = []
    if is_superuser:
        problems.append(RightsProblem(user, "is a superuser, who bypasses all rights and guards", _ROLES_REMEDY))
    problems += [*server.check_owner(), *server.check_public()]
    for role in server.roles:
        problems += server.check_role(role)
    return user, problems


def read_change_rights(connection: Connection) -> ChangeRights:
    """Read whether the current user may change the tables, and which roles own them."""
    schema = connection.exec_driver_sql(_SCHEMA).scalar_one()
    with use_catalogue_path(connection):
        parameters = {"schema": schema, "tables": [*_list_readable_tables(), *DASHBOARD_VIEWS]}
        user, owners, may_change = connection.execute(text(_CHANGE_RIGHTS), parameters).one()
    return ChangeRights(user, ", ".join(owners), may_change)


def describe_missing_rights(connection: Connection, role: str) -> str:
    """Describe the rights that the current user lacks for the work of a role; empty if the user lacks none."""

    def has_right(table: str, right: str) -> bool:
        return bool(connection.execute(text(_HAS_RIGHT), {"table": table, "right": right}).scalar())

    missing = {
        table: [right for right in rights if not has_right(table, right)]
        for table, rights in _find_required_rights([role]).items()
    }
    listed = [f"{rights} on {', '.join(tables)}" for rights, tables in _group_by_rights(missing)]
    if not listed:
        return ""
    return f"this user lacks {'; '.join(listed)}, which the role {ROLE_PREFIX}{role} has; {_ROLES_REMEDY}"


def _find_required_rights(roles: Iterable[str]) -> dict[str, set[str]]:
    """Return the rights that the work of these roles needs, by table."""
    writes = [(table, rights) for role in roles for table, rights in WRITE_RIGHTS[role].items()]
    required = {
        table: {"SELECT"} for table in (*(table for table, _ in writes), *_list_readable_tables(), *DASHBOARD_VIEWS)
    }
    for table, rights in writes:
        required[table].update(rights)
    return required


_HAS_RIGHT = """SELECT pg_catalog.has_table_privilege(pg_catalog.to_regclass(CAST(:table AS pg_catalog.text)),
  CAST(:right AS pg_catalog.text))"""
_SCHEMA = "SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = 'events'::pg_catalog.regclass"
_CURRENT_USER = "SELECT rolname, rolsuper, current_database() FROM pg_roles WHERE rolname = current_user"
# (role, table, right) of the effective rights of roles that are not owners; `public` stands for all users
_EFFECTIVE_RIGHTS = """WITH ours AS (
  SELECT c.oid, c.relname, c.relowner FROM pg_class c
  WHERE c.relnamespace = :schema AND c.relname = ANY(:tables) AND c.relkind IN ('r', 'v')
), roles AS (
  SELECT 'public' AS name, NULL::oid AS oid
  UNION ALL SELECT rolname, oid FROM pg_roles WHERE rolname = ANY(:roles)
)
SELECT roles.name, ours.relname, privilege FROM roles CROSS JOIN ours CROSS JOIN
  unnest(CAST(:privileges AS text[])) AS checked (privilege)
WHERE CASE WHEN roles.oid IS NULL THEN true ELSE NOT pg_has_role(roles.oid, ours.relowner, 'USAGE') END
  AND CASE WHEN privilege = ANY(:column_privileges)
      THEN has_any_column_privilege(roles.name, ours.oid, privilege)
      ELSE has_table_privilege(roles.name, ours.oid, privilege) END"""
# (role, table, right) of each grant; the roles with a grant on one of our tables are the ledger's
_GRANTED = """SELECT r.rolname, c.relname, a.privilege_type
FROM pg_class c
CROSS JOIN LATERAL (
  SELECT c.relacl AS acl UNION ALL SELECT t.attacl FROM pg_attribute t WHERE t.attrelid = c.oid
) AS acls
CROSS JOIN LATERAL aclexplode(acls.acl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE c.relnamespace = :schema AND c.relname = ANY(:tables) AND NOT r.rolsuper AND a.grantee <> c.relowner"""
_OWNERS = """SELECT c.relname, r.rolname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
WHERE c.relnamespace = :schema AND c.relname = ANY(:tables) ORDER BY c.relname"""
_CHANGE_RIGHTS = """SELECT current_user, array_agg(DISTINCT r.rolname), bool_and(pg_has_role(c.relowner, 'USAGE'))
FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE c.relnamespace = :schema AND c.relname = ANY(:tables)"""
# a row for each role, with the rights that `_check_other_rights` unpacks
_OTHER_RIGHTS = """SELECT r.rolname, r.rolcanlogin, r.rolcreaterole,
  has_database_privilege(r.oid, current_database(), 'CONNECT'),
  has_database_privilege(r.oid, current_database(), 'TEMP'),
  has_schema_privilege(r.oid, CAST(:schema AS oid), 'USAGE'),
  has_schema_privilege(r.oid, CAST(:schema AS oid), 'CREATE'),
  pg_has_role(r.oid, CAST(:owner AS regrole), 'MEMBER')
FROM pg_roles r WHERE r.rolname = ANY(:roles) AND NOT r.rolsuper AND r.oid <> CAST(:owner AS regrole)"""
# the rights of PUBLIC that `check_public` reports, and the schema's quoted name
_PUBLIC_RIGHTS = """SELECT has_database_privilege('public', current_database(), 'CONNECT'),
  has_database_privilege('public', current_database(), 'TEMP'),
  has_database_privilege('public', current_database(), 'CREATE'),
  has_schema_privilege('public', CAST(:schema AS oid), 'CREATE'),
  (SELECT quote_ident(nspname) FROM pg_namespace WHERE oid = :schema)"""


class _ServerRights:
    """The rights on the ledger in one schema of a server."""

    def __init__(self, connection: Connection, schema: int, database: str, user: str) -> None:
        self.database = _quote_name(database)
        parameters = {"schema": schema, "tables": [*_list_readable_tables(), *DASHBOARD_VIEWS]}
        owners = connection.execute(text(_OWNERS), parameters).all()
        self.owners: dict[str, str] = {row[0]: row[1] for row in owners}
        self.owner = Counter(self.owners.values()).most_common(1)[0][0]
        self.granted = {(*row,) for row in connection.execute(text(_GRANTED), parameters)}
        # the effective rights, by role and table
        self.rights: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        roles = sorted({user, *(row[0] for row in self.granted)})
        role_parameters = {
            **parameters,
            "roles": roles,
            "privileges": list(_PRIVILEGES),
            "column_privileges": list(_COLUMN_PRIVILEGES),
        }
        for role, table, privilege in connection.execute(text(_EFFECTIVE_RIGHTS), role_parameters):
            self.rights[role][table].add(privilege)
        self.public_rights = self.rights.pop("public", {})
        owner_parameters = {"schema": schema, "owner": _quote_name(self.owner, always=True), "roles": roles}
        self.other_rights = {row[0]: row[1:] for row in connection.execute(text(_OTHER_RIGHTS), owner_parameters)}
        self.roles = sorted(self.other_rights)
        *public_flags, self.schema = connection.execute(text(_PUBLIC_RIGHTS), {"schema": schema}).one()
        self.public_may_connect, self.public_may_make_temporary = public_flags[:2]
        self.public_may_make_schemas, self.public_may_create = public_flags[2:]

    def check_owner(self) -> Iterator[RightsProblem]:
        """Check that one role owns all tables, and that other roles can do the daily work."""
        for name, owner in self.owners.items():
            if owner != self.owner:
                remedy = f"ALTER TABLE {self.schema}.{name} OWNER TO {_quote_name(self.owner)}"
                yield RightsProblem(owner, f"owns {name}, but {self.owner} owns the other tables", remedy)
        for role, work in _WORK.items():
            if not any(right in WRITE_RIGHTS[role].get(table, ()) for _, table, right in self.granted):
                problem = f"owns the ledger and can switch its guards off, and no other role may {work}"
                yield RightsProblem(self.owner, problem, _ROLES_REMEDY)

    def check_public(self) -> Iterator[RightsProblem]:
        """Check the rights of PUBLIC, which all users of the server have."""
        database_rights, schema_right = f"ALL ON DATABASE {self.database}", f"CREATE ON SCHEMA {self.schema}"
        for is_problem, action, rights in (
            (self.public_may_connect, "connect to the database", database_rights),
            (self.public_may_make_temporary, f"create {_SHADOWING}", database_rights),
            (self.public_may_make_schemas, "create schemas", database_rights),
            (self.public_may_create, f"create objects in the schema {self.schema}", schema_right),
        ):
            if is_problem:
                yield RightsProblem(PUBLIC, f"may {action}", f"REVOKE {rights} FROM PUBLIC")
        for rights, tables in _group_by_rights(self.public_rights):
            yield RightsProblem(
                PUBLIC, f"may {rights} on {', '.join(tables)}", f"REVOKE ALL ON {self._list_tables(tables)} FROM PUBLIC"
            )

    def check_role(self, role: str) -> Iterator[RightsProblem]:
        """Check that a role has all rights for its work, and no other rights."""
        # one right to write to a table is enough to make a role a writer or a rebuilder
        role_rights = self.rights[role]
        kinds = [
            kind
            for kind, tables in WRITE_RIGHTS.items()
            if any(role_rights.get(table, set()) & {*rights} for table, rights in tables.items())
        ]
        yield from self._find_excess_rights(role)
        yield from self._check_other_rights(role, writes=bool(kinds))
        reads_events = kinds or "SELECT" in role_rights.get("events", ())
        missing = {
            table: rights - role_rights.get(table, set()) - self.public_rights.get(table, set())
            for table, rights in (_find_required_rights(kinds) if reads_events else {}).items()
            if table in self.owners
        }
        for rights, tables in _group_by_rights(missing):
            grant = f"GRANT {rights} ON {self._list_tables(tables)} TO {_quote_name(role)}"
            yield RightsProblem(role, f"lacks {rights} on {', '.join(tables)}", grant)

    def _list_tables(self, tables: Iterable[str]) -> str:
        return ", ".join(f"{self.schema}.{table}" for table in tables)

    def _find_excess_rights(self, role: str) -> Iterator[RightsProblem]:
        """Yield problems for rights that no role's work needs on a table: granted to this role, or inherited."""
        direct: dict[str, set[str]] = {}
        inherited: dict[str, set[str]] = {}
        for table, rights in sorted(self.rights[role].items()):
            allowed = {"SELECT"}.union(*(tables.get(table, ()) for tables in WRITE_RIGHTS.values()))
            excess = rights - allowed - self.public_rights.get(table, set())
            direct[table] = {right for right in excess if (role, table, right) in self.granted}
            inherited[table] = excess - direct[table]
        for rights_text, tables in _group_by_rights(direct):
            revoke = f"REVOKE {rights_text} ON {self._list_tables(tables)} FROM {_quote_name(role)}"
            yield RightsProblem(role, f"may {rights_text} on {', '.join(tables)}", revoke)
        for rights_text, tables in _group_by_rights(inherited):
            remedy = f"inherited: REVOKE <role that has the right> FROM {_quote_name(role)}"
            yield RightsProblem(role, f"may {rights_text} on {', '.join(tables)}", remedy)

    def _check_other_rights(self, role: str, *, writes: bool) -> Iterator[RightsProblem]:
        """Check the rights on objects other than tables: risky rights, and rights needed to reach the tables."""
        logs_in, makes_roles, connects, makes_temporary, uses_schema, creates, may_be_owner = self.other_rights[role]
        name, is_granted = _quote_name(role), any(role == row[0] for row in self.granted)
        makes_temporary = makes_temporary and not self.public_may_make_temporary
        for is_problem, problem, remedy in (
            (
                may_be_owner and is_granted,
                f"may become {self.owner}, who owns the ledger",
                f"REVOKE {_quote_name(self.owner)} FROM {name}",
            ),
            (
                makes_roles and writes,
                "may create roles, and so grant itself rights",
                f"ALTER ROLE {name} NOCREATEROLE",
            ),
            (
                makes_temporary and writes,
                f"may create {_SHADOWING}",
                f"REVOKE TEMPORARY ON DATABASE {self.database} FROM {name}",
            ),
            (
                creates and not self.public_may_create,
                f"may create objects in the schema {self.schema}",
                f"REVOKE CREATE ON SCHEMA {self.schema} FROM {name}",
            ),
            (
                logs_in and is_granted and not connects,
                "lacks CONNECT on the database",
                f"GRANT CONNECT ON DATABASE {self.database} TO {name}",
            ),
            (
                is_granted and not uses_schema,
                f"lacks USAGE on the schema {self.schema}",
                f"GRANT USAGE ON SCHEMA {self.schema} TO {name}",
            ),
        ):
            if is_problem:
                yield RightsProblem(role, problem, remedy)


def _group_by_rights(tables: Mapping[str, Collection[str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each combination of rights with its tables, leaving out tables without rights."""
    tables_by_rights: dict[str, list[str]] = defaultdict(list)
    for table, rights in tables.items():
        if rights:
            tables_by_rights[", ".join(right for right in _PRIVILEGES if right in rights)].append(table)
    yield from tables_by_rights.items()


def _list_readable_tables() -> Sequence[str]:
    """List the tables and views that only the roles with access to everything may read; the dashboard may not."""
    return [*(table for tables in WRITE_RIGHTS.values() for table in tables), *OWNER_ONLY]
