//! Rights: who may do what with tables, schemas, databases …

use halite_spec::{Args, Cx, Error, Result, function};
use halite_value::{Dict, Value};

use super::queries::{Account, Conn, array, identifier, literal};
use crate::cmd;

/// The letters of an access list, and the rights of each kind of thing.
const LETTERS: [(char, &str); 12] = [
    ('a', "INSERT"),
    ('r', "SELECT"),
    ('w', "UPDATE"),
    ('d', "DELETE"),
    ('D', "TRUNCATE"),
    ('x', "REFERENCES"),
    ('t', "TRIGGER"),
    ('X', "EXECUTE"),
    ('U', "USAGE"),
    ('C', "CREATE"),
    ('T', "TEMPORARY"),
    ('c', "CONNECT"),
];

fn rights_of(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "table" => "arwdDxt",
        "sequence" => "rwU",
        "schema" => "UC",
        "database" => "CTc",
        "function" => "X",
        "language" => "U",
        "tablespace" => "C",
        "group" => "",
        _ => return None,
    })
}

fn words_of(kind: &str) -> Vec<&'static str> {
    let letters = rights_of(kind).unwrap_or_default();
    LETTERS.iter().filter(|(letter, _)| letters.contains(*letter)).map(|(_, word)| *word).collect()
}

/// Reads `{alice=arw*d/bob,=r/bob}`: role → right → whether it can be passed on.
fn parse(acl: &str) -> Dict {
    let roles = Dict::new();
    for item in array(acl) {
        let Some((role, rest)) = item.split_once('=') else { continue };
        let letters: Vec<char> = rest.split('/').next().unwrap_or_default().chars().collect();
        let rights = Dict::new();
        for (at, letter) in letters.iter().enumerate() {
            if let Some((_, word)) = LETTERS.iter().find(|(own, _)| own == letter) {
                rights.insert(*word, letters.get(at + 1) == Some(&'*'));
            }
        }
        roles.insert(if role.is_empty() { "public" } else { role.trim_matches('"') }, rights);
    }
    roles
}

/// What is to be granted or revoked.
#[derive(Clone, Debug)]
pub struct Rights {
    pub role: String,
    pub object: String,
    pub kind: String,
    pub privileges: Vec<String>,
    pub schema: String,
    pub grant_option: bool,
}

impl Rights {
    /// Checks that the kind has these rights.
    pub fn new(
        role: &str,
        object: &str,
        kind: &str,
        privileges: &Value,
        schema: &str,
        grant_option: bool,
    ) -> Result<Self> {
        let kind = kind.to_lowercase();
        if rights_of(&kind).is_none() {
            return Err(Error::invalid(format!("Invalid object_type: {kind} provided")));
        }
        if kind != "group" && !privileges.truthy() {
            return Err(Error::invalid("Parameter privileges is required"));
        }
        let given = if kind == "group" || !privileges.truthy() {
            Vec::new()
        } else {
            cmd::split_input(privileges)
        };
        let privileges: Vec<String> = given.iter().map(|word| word.to_uppercase()).collect();
        let known = words_of(&kind);
        let wrong: Vec<&str> = privileges
            .iter()
            .map(String::as_str)
            .filter(|word| *word != "ALL" && !known.contains(word))
            .collect();
        if !wrong.is_empty() {
            return Err(Error::invalid(format!(
                "Invalid privilege(s): {} provided for object {kind}",
                wrong.join(" ")
            )));
        }
        Ok(Self {
            role: role.to_owned(),
            object: object.to_owned(),
            kind,
            privileges,
            schema: schema.to_owned(),
            grant_option,
        })
    }

    /// As comments show them.
    pub fn shown(&self) -> String {
        if self.kind == "group" { self.object.clone() } else { self.privileges.join(",") }
    }

    fn wanted(&self) -> Vec<&str> {
        if self.privileges.iter().any(|word| word == "ALL") {
            return words_of(&self.kind);
        }
        self.privileges.iter().map(String::as_str).collect()
    }

    /// The thing, as a statement names it.
    fn target(&self) -> String {
        let kind = self.kind.to_uppercase();
        let in_schema = matches!(self.kind.as_str(), "table" | "sequence" | "function");
        if in_schema && self.object.eq_ignore_ascii_case("all") {
            return format!("ALL {kind}S IN SCHEMA {}", identifier(&self.schema));
        }
        if self.kind == "function" {
            // differs: Salt quotes the arguments with the name, and no such function exists.
            let (name, args) = self.object.split_once('(').unwrap_or((&self.object, ")"));
            return format!("FUNCTION {}.{}({args}", identifier(&self.schema), identifier(name));
        }
        if in_schema {
            return format!("{kind} {}.{}", identifier(&self.schema), identifier(&self.object));
        }
        format!("{kind} {}", identifier(&self.object))
    }

    fn role_word(&self) -> String {
        if self.role.eq_ignore_ascii_case("public") {
            "PUBLIC".into()
        } else {
            identifier(&self.role)
        }
    }
}

impl Conn {
    /// Role → right → whether it can be passed on; for a group, member → whether it may add others.
    pub fn rights(&self, cx: &Cx, object: &str, kind: &str, schema: &str) -> Result<Dict> {
        let (name, schema) = (literal(object), literal(schema));
        let relation = |kinds: &str| {
            format!(
                "SELECT c.relacl AS acl FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n \
                 ON n.oid = c.relnamespace WHERE n.nspname = {schema} AND c.relname = {name} AND \
                 c.relkind IN ({kinds})"
            )
        };
        let query = match kind {
            "table" => relation("'r', 'v', 'p', 'm', 'f'"),
            "sequence" => relation("'S'"),
            "schema" => {
                format!("SELECT nspacl AS acl FROM pg_catalog.pg_namespace WHERE nspname = {name}")
            }
            "database" => {
                format!("SELECT datacl AS acl FROM pg_catalog.pg_database WHERE datname = {name}")
            }
            "language" => {
                format!("SELECT lanacl AS acl FROM pg_catalog.pg_language WHERE lanname = {name}")
            }
            "tablespace" => {
                format!("SELECT spcacl AS acl FROM pg_catalog.pg_tablespace WHERE spcname = {name}")
            }
            "function" => format!(
                "SELECT p.proacl AS acl FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON \
                 n.oid = p.pronamespace WHERE n.nspname = {schema} AND p.oid::regprocedure::text = {name}"
            ),
            "group" => format!(
                "SELECT r.rolname AS name, bool_or(m.admin_option) AS admin FROM \
                 pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON m.member = r.oid JOIN \
                 pg_catalog.pg_roles g ON m.roleid = g.oid WHERE g.rolname = {name} GROUP BY 1 \
                 ORDER BY 1"
            ),
            _ => return Err(Error::invalid(format!("Invalid object_type: {kind} provided"))),
        };
        let rows = self.ask(cx, &query)?.unwrap_or_default();
        let cell = |row: &super::Row, at: usize| {
            row.get(at).map(|(_, value)| value.clone()).unwrap_or_default()
        };
        if kind == "group" {
            return Ok(rows.iter().map(|row| (cell(row, 0), cell(row, 1) == "t")).collect());
        }
        Ok(rows.first().map(|row| parse(&cell(row, 0))).unwrap_or_default())
    }

    fn owner_of(&self, cx: &Cx, wanted: &Rights) -> Result<Option<String>> {
        let (name, schema) = (literal(&wanted.object), literal(&wanted.schema));
        let query = match wanted.kind.as_str() {
            "table" => format!(
                "SELECT tableowner AS name FROM pg_catalog.pg_tables WHERE schemaname = {schema} AND tablename = {name}"
            ),
            "schema" => format!(
                "SELECT pg_get_userbyid(nspowner) AS name FROM pg_catalog.pg_namespace WHERE nspname = {name}"
            ),
            "database" => format!(
                "SELECT pg_get_userbyid(datdba) AS name FROM pg_catalog.pg_database WHERE datname = {name}"
            ),
            "sequence" => format!(
                "SELECT pg_get_userbyid(c.relowner) AS name FROM pg_catalog.pg_class c JOIN \
                 pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = {schema} AND c.relname = {name}"
            ),
            _ => return Ok(None),
        };
        let rows = self.ask(cx, &query)?.unwrap_or_default();
        Ok(rows.first().and_then(|row| row.first()).map(|(_, owner)| owner.clone()))
    }

    /// Tells whether a role has the rights; the owner of a thing has all.
    pub fn has_rights(&self, cx: &Cx, wanted: &Rights) -> Result<bool> {
        if wanted.kind != "group" && self.owner_of(cx, wanted)?.as_ref() == Some(&wanted.role) {
            return Ok(true);
        }
        let all = wanted.object.eq_ignore_ascii_case("all")
            && matches!(wanted.kind.as_str(), "table" | "sequence" | "function");
        if all {
            // differs: Salt looks for a thing of the name ALL, and grants again each time.
            return self.has_all(cx, wanted);
        }
        let found = self.rights(cx, &wanted.object, &wanted.kind, &wanted.schema)?;
        let Some(own) = found.get(wanted.role.as_str()) else { return Ok(false) };
        if wanted.kind == "group" {
            return Ok(!wanted.grant_option || own.truthy());
        }
        let has = |word: &&str| {
            own.get(word).is_some_and(|passes| !wanted.grant_option || passes.truthy())
        };
        Ok(wanted.wanted().iter().all(has))
    }

    fn has_all(&self, cx: &Cx, wanted: &Rights) -> Result<bool> {
        let schema = literal(&wanted.schema);
        let query = match wanted.kind.as_str() {
            "function" => format!(
                "SELECT p.oid::regprocedure::text AS name FROM pg_catalog.pg_proc p JOIN \
                 pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = {schema}"
            ),
            kind => {
                let kinds = if kind == "table" { "'r', 'v', 'p', 'm', 'f'" } else { "'S'" };
                format!(
                    "SELECT c.relname AS name FROM pg_catalog.pg_class c JOIN \
                     pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = \
                     {schema} AND c.relkind IN ({kinds})"
                )
            }
        };
        for row in self.ask(cx, &query)?.unwrap_or_default() {
            let object = row.first().map(|(_, name)| name.clone()).unwrap_or_default();
            if !self.has_rights(cx, &Rights { object, ..wanted.clone() })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub fn grant(&self, cx: &Cx, wanted: &Rights) -> Result<bool> {
        if self.has_rights(cx, wanted)? {
            tracing::info!(
                "The object: {} of type: {} already has the privileges",
                wanted.object,
                wanted.kind
            );
            return Ok(false);
        }
        let role = wanted.role_word();
        let statement = if wanted.kind == "group" {
            let option = if wanted.grant_option { " WITH ADMIN OPTION" } else { "" };
            format!("GRANT {} TO {role}{option}", identifier(&wanted.object))
        } else {
            let option = if wanted.grant_option { " WITH GRANT OPTION" } else { "" };
            let rights = wanted.privileges.join(",");
            format!("GRANT {rights} ON {} TO {role}{option}", wanted.target())
        };
        Ok(self.change(cx, &statement)? && self.has_rights(cx, wanted)?)
    }

    pub fn revoke(&self, cx: &Cx, wanted: &Rights) -> Result<bool> {
        if !self.has_rights(cx, wanted)? {
            return Ok(false);
        }
        let role = wanted.role_word();
        let statement = if wanted.kind == "group" {
            format!("REVOKE {} FROM {role}", identifier(&wanted.object))
        } else {
            format!("REVOKE {} ON {} FROM {role}", wanted.privileges.join(","), wanted.target())
        };
        Ok(self.change(cx, &statement)? && !self.has_rights(cx, wanted)?)
    }
}

/// Return who has which rights: role → right → whether it can be passed on.
///
/// ```console
/// $ salt '*' postgres.privileges_list t1 table maintenance_db=app
/// ```
#[function]
pub fn privileges_list(
    cx: &Cx,
    /// The thing.
    name: String,
    /// What it is: `table`, `database` …
    object_type: String,
    /// The schema the thing is in.
    #[default("public".to_owned())]
    prepend: String,
    /// The database to connect to.
    maintenance_db: Option<String>,
    #[group] connection: Account,
) -> Result<Dict> {
    connection.conn(cx, maintenance_db.as_ref()).rights(
        cx,
        &name,
        &object_type.to_lowercase(),
        &prepend,
    )
}

/// Rights of a role to a thing.
#[derive(Args)]
pub struct Wanted {
    /// The role.
    pub name: String,
    /// The thing the rights are about; `ALL` for all of a schema.
    object_name: String,
    /// `table`, `sequence`, `schema`, `database`, `function`, `language`, `tablespace` or `group`.
    object_type: String,
    /// The rights, as a list or with commas.
    #[default(Value::Null)]
    privileges: Value,
}

impl Wanted {
    pub fn rights(&self, prepend: &str, grant_option: bool) -> Result<Rights> {
        let Self { name, object_name, object_type, privileges } = self;
        Rights::new(name, object_name, object_type, privileges, prepend, grant_option)
    }
}

/// Rights of a role to a thing, with what goes with granting them.
#[derive(Args)]
pub struct Granted {
    #[group]
    pub wanted: Wanted,
    /// The role may pass them on.
    #[default(false)]
    #[shown(None::<bool>)]
    grant_option: bool,
    /// The schema the thing is in.
    #[default("public".to_owned())]
    prepend: String,
}

impl Granted {
    pub fn rights(&self) -> Result<Rights> {
        self.wanted.rights(&self.prepend, self.grant_option)
    }
}

/// Tell whether a role has rights.
///
/// ```console
/// $ salt '*' postgres.has_privileges alice t1 table SELECT,INSERT maintenance_db=app
/// ```
#[function]
pub fn has_privileges(
    cx: &Cx,
    #[group] granted: Granted,
    /// The database to connect to.
    maintenance_db: Option<String>,
    #[group] connection: Account,
) -> Result<bool> {
    let rights = granted.rights()?;
    connection.conn(cx, maintenance_db.as_ref()).has_rights(cx, &rights)
}

/// Grant rights to a role.
///
/// ```console
/// $ salt '*' postgres.privileges_grant alice t1 table SELECT,INSERT maintenance_db=app
/// ```
#[function]
pub fn privileges_grant(
    cx: &Cx,
    #[group] granted: Granted,
    /// The database to connect to.
    maintenance_db: Option<String>,
    #[group] connection: Account,
) -> Result<bool> {
    let rights = granted.rights()?;
    connection.conn(cx, maintenance_db.as_ref()).grant(cx, &rights)
}

/// Revoke rights from a role.
///
/// ```console
/// $ salt '*' postgres.privileges_revoke alice t1 table SELECT,INSERT maintenance_db=app
/// ```
#[function]
pub fn privileges_revoke(
    cx: &Cx,
    #[group] wanted: Wanted,
    /// The schema the thing is in.
    #[default("public".to_owned())]
    prepend: String,
    /// The database to connect to.
    maintenance_db: Option<String>,
    #[group] connection: Account,
) -> Result<bool> {
    let wanted = wanted.rights(&prepend, false)?;
    connection.conn(cx, maintenance_db.as_ref()).revoke(cx, &wanted)
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    #[test]
    fn access_lists() {
        let found = parse("{postgres=arwdDxt/postgres,carl=a*r/postgres,=U/postgres,\"a b=r/x\"}");
        assert_eq!(found.get("carl"), Some(dict! { "INSERT" => true, "SELECT" => false }));
        assert_eq!(found.get("public"), Some(dict! { "USAGE" => false }));
        assert_eq!(found.get("a b"), Some(dict! { "SELECT" => false }));
        assert!(parse("").is_empty());
    }

    #[test]
    fn statements() {
        let target = |kind: &str, object: &str| {
            Rights::new("carl", object, kind, &"ALL".into(), "public", false).unwrap().target()
        };
        assert_eq!(target("table", "t1"), "TABLE \"public\".\"t1\"");
        assert_eq!(target("table", "ALL"), "ALL TABLES IN SCHEMA \"public\"");
        assert_eq!(target("function", "f1(integer)"), "FUNCTION \"public\".\"f1\"(integer)");
        assert_eq!(target("database", "db"), "DATABASE \"db\"");
        let wrong = Rights::new("carl", "t1", "table", &"BOGUS".into(), "public", false);
        let text = wrong.unwrap_err().to_string();
        assert_eq!(text, "Invalid privilege(s): BOGUS provided for object table");
    }
}
