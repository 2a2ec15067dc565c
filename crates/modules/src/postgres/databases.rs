//! Databases, schemas, extensions, tablespaces and languages.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function};
use halite_value::{Dict, Value, entries};

use super::queries::{Account, Conn, Connection, Row, SchemaAccount, Server, identifier, literal};
use crate::cmd::{self, Options};

fn text(row: &Row, name: &str) -> String {
    row.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone()).unwrap_or_default()
}

/// What a database shall be.
#[derive(Clone, Debug, Default)]
pub struct Database {
    pub tablespace: Option<String>,
    pub encoding: Option<String>,
    pub lc_collate: Option<String>,
    pub lc_ctype: Option<String>,
    pub owner: Option<String>,
    pub template: Option<String>,
}

/// What a tablespace shall be.
#[derive(Clone, Debug, Default)]
pub struct AlterTablespace {
    pub new_name: Option<String>,
    pub new_owner: Option<String>,
    pub set_option: Dict,
    pub reset_option: Option<String>,
}

fn pairs(options: &Dict) -> String {
    let pair = |(name, value): (halite_value::Key, Value)| format!("{name} = {value}");
    options.into_iter().map(pair).collect::<Vec<_>>().join(", ")
}

impl Conn {
    /// Name → owner, encoding … of the databases.
    pub fn databases(&self, cx: &Cx) -> Result<Option<Dict>> {
        let query = "SELECT d.datname AS name, pg_get_userbyid(d.datdba) AS owner, \
                     pg_encoding_to_char(d.encoding) AS encoding, d.datcollate AS collation, \
                     d.datctype AS ctype, d.datacl AS acl, t.spcname AS tablespace FROM \
                     pg_catalog.pg_database d JOIN pg_catalog.pg_tablespace t ON t.oid = \
                     d.dattablespace";
        let Some(rows) = self.ask(cx, query)? else { return Ok(None) };
        let all = rows.iter().map(|row| {
            let database = entries! {
                "Owner" => text(row, "owner"), "Encoding" => text(row, "encoding"),
                "Collate" => text(row, "collation"), "Ctype" => text(row, "ctype"),
                "Access privileges" => text(row, "acl"), "Tablespace" => text(row, "tablespace"),
            };
            (text(row, "name"), database)
        });
        Ok(Some(all.collect()))
    }

    pub fn create_database(&self, cx: &Cx, name: &str, how: &Database) -> Result<bool> {
        let mut statement = format!("CREATE DATABASE {}", identifier(name));
        let quoted = |text: &Option<String>| text.as_deref().map(literal);
        let named = |text: &Option<String>| text.as_deref().map(identifier);
        let options = [
            ("TABLESPACE", named(&how.tablespace)),
            ("OWNER", named(&how.owner)),
            ("TEMPLATE", how.template.clone()),
            ("ENCODING", quoted(&how.encoding)),
            ("LC_COLLATE", quoted(&how.lc_collate)),
            ("LC_CTYPE", quoted(&how.lc_ctype)),
        ];
        let options: Vec<String> = options
            .into_iter()
            .filter_map(|(word, value)| value.map(|value| format!("{word} = {value}")))
            .collect();
        if !options.is_empty() {
            statement.push_str(&format!(" WITH {}", options.join(" ")));
        }
        self.change(cx, &statement)
    }

    pub fn alter_database(
        &self,
        cx: &Cx,
        name: &str,
        owner: Option<&str>,
        tablespace: Option<&str>,
        recurse: bool,
    ) -> Result<bool> {
        let own = identifier(name);
        if let Some(owner) = owner {
            let done = if recurse {
                self.give(cx, name, owner)?
            } else {
                self.change(cx, &format!("ALTER DATABASE {own} OWNER TO {}", identifier(owner)))?
            };
            if !done {
                return Ok(false);
            }
        }
        match tablespace {
            Some(space) => self
                .change(cx, &format!("ALTER DATABASE {own} SET TABLESPACE {}", identifier(space))),
            None => Ok(true),
        }
    }

    /// Gives a database with everything in it to another role.
    fn give(&self, cx: &Cx, database: &str, owner: &str) -> Result<bool> {
        let inside = self.in_database(database);
        let new = identifier(owner);
        let query = "SELECT 'TABLE' AS kind, format('%I.%I', schemaname, tablename) AS thing FROM \
                     pg_catalog.pg_tables WHERE schemaname NOT IN ('pg_catalog', \
                     'information_schema') UNION ALL SELECT 'SEQUENCE', format('%I.%I', \
                     sequence_schema, sequence_name) FROM information_schema.sequences UNION ALL \
                     SELECT 'VIEW', format('%I.%I', table_schema, table_name) FROM \
                     information_schema.views WHERE table_schema NOT IN ('pg_catalog', \
                     'information_schema') UNION ALL SELECT 'FUNCTION', p.oid::regprocedure::text \
                     FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = \
                     p.pronamespace WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') \
                     AND p.prokind = 'f' UNION ALL SELECT 'SCHEMA', format('%I', nspname) FROM \
                     pg_catalog.pg_namespace WHERE nspname <> 'information_schema' AND nspname \
                     NOT LIKE 'pg\\_%'";
        let Some(things) = inside.ask(cx, query)? else { return Ok(false) };
        let mut statements =
            vec![format!("ALTER DATABASE {} OWNER TO {new}", identifier(database))];
        for thing in &things {
            statements.push(format!(
                "ALTER {} {} OWNER TO {new}",
                text(thing, "kind"),
                text(thing, "thing")
            ));
        }
        // As one transaction: all of it or nothing.
        inside.change(cx, &statements.join("; "))
    }

    pub fn drop_database(&self, cx: &Cx, name: &str) -> Result<bool> {
        let own = identifier(name);
        self.change(cx, &format!("REVOKE CONNECT ON DATABASE {own} FROM public"))?;
        self.change(
            cx,
            &format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {} AND \
                 pid <> pg_backend_pid()",
                literal(name)
            ),
        )?;
        self.change(cx, &format!("DROP DATABASE {own}"))
    }

    pub fn schemas(&self, cx: &Cx) -> Result<Option<Dict>> {
        let query = "SELECT n.nspname AS name, pg_get_userbyid(n.nspowner) AS owner, n.nspacl AS \
                     acl FROM pg_catalog.pg_namespace n ORDER BY 1";
        let Some(rows) = self.ask(cx, query)? else { return Ok(None) };
        let all = rows.iter().map(|row| {
            let schema = entries! { "owner" => text(row, "owner"), "acl" => text(row, "acl") };
            (text(row, "name"), schema)
        });
        Ok(Some(all.collect()))
    }

    pub fn schema(&self, cx: &Cx, name: &str) -> Result<Option<Dict>> {
        let all = self.schemas(cx)?;
        Ok(all.and_then(|all| all.get(name)).and_then(|one| one.as_dict().cloned()))
    }

    pub fn create_schema(&self, cx: &Cx, name: &str, owner: Option<&str>) -> Result<bool> {
        if self.schema(cx, name)?.is_some() {
            return Ok(false);
        }
        let owner = owner.map(|owner| format!(" AUTHORIZATION {}", identifier(owner)));
        let statement = format!("CREATE SCHEMA {}{}", identifier(name), owner.unwrap_or_default());
        self.change(cx, &statement)
    }

    pub fn drop_schema(&self, cx: &Cx, name: &str) -> Result<bool> {
        if self.schema(cx, name)?.is_none() {
            return Ok(false);
        }
        self.change(cx, &format!("DROP SCHEMA {}", identifier(name)))?;
        Ok(self.schema(cx, name)?.is_none())
    }

    fn named_rows(&self, cx: &Cx, query: &str, key: &str) -> Result<Option<Dict>> {
        let Some(rows) = self.ask(cx, query)? else { return Ok(None) };
        let all = rows.into_iter().map(|row| {
            let name = text(&row, key);
            (name, row.into_iter().collect::<Dict>())
        });
        Ok(Some(all.collect()))
    }

    pub fn extensions(&self, cx: &Cx) -> Result<Option<Dict>> {
        let query = "SELECT e.*, n.nspname AS schema_name FROM pg_catalog.pg_extension e JOIN \
                     pg_catalog.pg_namespace n ON e.extnamespace = n.oid";
        self.named_rows(cx, query, "extname")
    }

    pub fn offered_extensions(&self, cx: &Cx) -> Result<Option<Dict>> {
        self.named_rows(cx, "SELECT * FROM pg_available_extensions()", "name")
    }

    pub fn extension(&self, cx: &Cx, name: &str) -> Result<Option<Dict>> {
        let all = self.extensions(cx)?;
        Ok(all.and_then(|all| all.get(name)).and_then(|one| one.as_dict().cloned()))
    }

    /// What would have to change about an extension.
    pub fn extension_state(
        &self,
        cx: &Cx,
        name: &str,
        version: Option<&str>,
        schema: Option<&str>,
    ) -> Result<Vec<&'static str>> {
        let Some(found) = self.extension(cx, name)? else { return Ok(vec![NOT_INSTALLED]) };
        let part = |key: &str| found.get(key).unwrap_or_default().to_string();
        let mut state = vec![INSTALLED];
        if version.is_some_and(|version| version != part("extversion")) {
            state.push(OTHER_VERSION);
        }
        if found.get("extrelocatable") == Some("t".into())
            && schema.is_some_and(|schema| schema != part("schema_name"))
        {
            state.push(OTHER_SCHEMA);
        }
        Ok(state)
    }

    pub fn create_extension(
        &self,
        cx: &Cx,
        name: &str,
        if_not_exists: bool,
        schema: Option<&str>,
        version: Option<&str>,
    ) -> Result<bool> {
        let state = self.extension_state(cx, name, version, schema)?;
        let own = identifier(name);
        let quoted = version.map(literal);
        if state.contains(&NOT_INSTALLED) {
            let mut words = vec!["CREATE EXTENSION".to_owned()];
            if if_not_exists {
                words.push("IF NOT EXISTS".into());
            }
            words.push(own);
            if schema.is_some() || version.is_some() {
                words.push("WITH".into());
            }
            if let Some(schema) = schema {
                words.push(format!("SCHEMA {}", identifier(schema)));
            }
            if let Some(version) = &quoted {
                words.push(format!("VERSION {version}"));
            }
            self.change(cx, &words.join(" "))?;
        } else {
            if let Some(schema) = schema.filter(|_| state.contains(&OTHER_SCHEMA)) {
                self.change(
                    cx,
                    &format!("ALTER EXTENSION {own} SET SCHEMA {}", identifier(schema)),
                )?;
            }
            if let Some(version) = quoted.filter(|_| state.contains(&OTHER_VERSION)) {
                self.change(cx, &format!("ALTER EXTENSION {own} UPDATE TO {version}"))?;
            }
        }
        let state = self.extension_state(cx, name, version, schema)?;
        Ok(state == [INSTALLED])
    }

    pub fn drop_extension(&self, cx: &Cx, name: &str, cascade: bool) -> Result<bool> {
        let words = if cascade { " CASCADE" } else { "" };
        self.change(cx, &format!("DROP EXTENSION IF EXISTS {}{words}", identifier(name)))?;
        Ok(self.extension(cx, name)?.is_none())
    }

    pub fn tablespaces(&self, cx: &Cx) -> Result<Option<Dict>> {
        let query = "SELECT spcname AS \"Name\", pg_get_userbyid(spcowner) AS \"Owner\", spcacl \
                     AS \"ACL\", spcoptions AS \"Opts\", pg_tablespace_location(oid) AS \
                     \"Location\" FROM pg_catalog.pg_tablespace";
        let all = self.named_rows(cx, query, "Name")?;
        for (_, space) in all.iter().flatten() {
            if let Value::Dict(space) = space {
                space.remove("Name");
            }
        }
        Ok(all)
    }

    pub fn create_tablespace(
        &self,
        cx: &Cx,
        name: &str,
        location: &str,
        options: &Dict,
        owner: Option<&str>,
    ) -> Result<bool> {
        let owner = owner.map(|owner| format!(" OWNER {}", identifier(owner))).unwrap_or_default();
        let options = if options.is_empty() {
            String::new()
        } else {
            format!(" WITH ( {} )", pairs(options))
        };
        self.change(
            cx,
            &format!(
                "CREATE TABLESPACE {}{owner} LOCATION {}{options}",
                identifier(name),
                literal(location)
            ),
        )
    }

    pub fn alter_tablespace(&self, cx: &Cx, name: &str, how: &AlterTablespace) -> Result<bool> {
        let own = identifier(name);
        let mut clauses = Vec::new();
        if let Some(owner) = &how.new_owner {
            clauses.push(format!("OWNER TO {}", identifier(owner)));
        }
        if !how.set_option.is_empty() {
            clauses.push(format!("SET ({})", pairs(&how.set_option)));
        }
        if let Some(option) = &how.reset_option {
            clauses.push(format!("RESET ({option})"));
        }
        if let Some(new) = &how.new_name {
            clauses.push(format!("RENAME TO {}", identifier(new)));
        }
        for clause in clauses {
            if !self.change(cx, &format!("ALTER TABLESPACE {own} {clause}"))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub fn languages(&self, cx: &Cx) -> Result<Option<Dict>> {
        let rows = self.ask(cx, "SELECT lanname AS name FROM pg_catalog.pg_language")?;
        Ok(rows.map(|rows| rows.iter().map(|row| (text(row, "name"), text(row, "name"))).collect()))
    }
}

const INSTALLED: &str = "EXTENSION INSTALLED";
const NOT_INSTALLED: &str = "EXTENSION NOT INSTALLED";
const OTHER_SCHEMA: &str = "EXTENSION MUST BE MOVED";
const OTHER_VERSION: &str = "EXTENSION MUST BE UPGRADED";

/// Return all databases: name → owner, encoding …
///
/// ```console
/// $ salt web1 postgres.db_list
/// ```
#[function]
pub fn db_list(cx: &Cx, #[group] connection: Connection) -> Result<Dict> {
    Ok(connection.conn(cx).databases(cx)?.unwrap_or_default())
}

/// Tell whether there is a database.
///
/// ```console
/// $ salt '*' postgres.db_exists app
/// ```
#[function]
pub fn db_exists(
    cx: &Cx,
    /// The database.
    name: String,
    #[group] connection: Connection,
) -> Result<bool> {
    Ok(connection.conn(cx).databases(cx)?.is_some_and(|all| all.contains(name.as_str())))
}

/// Create a database.
///
/// ```console
/// $ salt '*' postgres.db_create app owner=app
/// ```
#[function]
pub fn db_create(
    cx: &Cx,
    /// The database.
    name: String,
    #[group] server: Server,
    /// Where it is kept.
    tablespace: Option<String>,
    /// How letters are stored.
    encoding: Option<String>,
    /// How texts are sorted.
    lc_collate: Option<String>,
    /// What letters are.
    lc_ctype: Option<String>,
    /// The role it belongs to.
    owner: Option<String>,
    /// The database it is copied from.
    template: Option<String>,
    /// The user of this machine that runs the client.
    runas: Option<String>,
) -> Result<bool> {
    let how = Database { tablespace, encoding, lc_collate, lc_ctype, owner, template };
    server.conn(cx, runas.as_ref()).create_database(cx, &name, &how)
}

/// Change owner or tablespace of a database.
///
/// ```console
/// $ salt '*' postgres.db_alter app owner=app
/// ```
#[function]
pub fn db_alter(
    cx: &Cx,
    /// The database.
    name: String,
    #[group] server: Server,
    /// Where it is kept.
    tablespace: Option<String>,
    /// The role it belongs to.
    owner: Option<String>,
    /// Give what is in it to the owner, too.
    #[default(false)]
    owner_recurse: bool,
    /// The user of this machine that runs the client.
    runas: Option<String>,
) -> Result<bool> {
    server.conn(cx, runas.as_ref()).alter_database(
        cx,
        &name,
        owner.as_deref(),
        tablespace.as_deref(),
        owner_recurse,
    )
}

/// Remove a database; connections to it are ended.
///
/// ```console
/// $ salt '*' postgres.db_remove app
/// ```
#[function]
pub fn db_remove(
    cx: &Cx,
    /// The database.
    name: String,
    #[group] connection: Connection,
) -> Result<bool> {
    connection.conn(cx).drop_database(cx, &name)
}

/// Give a database and all in it to a role.
///
/// ```console
/// $ salt '*' postgres.owner_to app alice
/// ```
#[function]
pub fn owner_to(
    cx: &Cx,
    /// The database.
    dbname: String,
    /// The role.
    ownername: String,
    #[group] connection: Account,
) -> Result<bool> {
    connection.conn(cx, None).alter_database(cx, &dbname, Some(&ownername), None, true)
}

/// Return the extensions of a database: name → what is known of it.
///
/// ```console
/// $ salt '*' postgres.installed_extensions maintenance_db=app
/// ```
#[function]
pub fn installed_extensions(cx: &Cx, #[group] connection: Connection) -> Result<Dict> {
    Ok(connection.conn(cx).extensions(cx)?.unwrap_or_default())
}

/// Return the extensions that could be installed.
///
/// ```console
/// $ salt web1 postgres.available_extensions
/// ```
#[function]
pub fn available_extensions(cx: &Cx, #[group] connection: Connection) -> Result<Dict> {
    Ok(connection.conn(cx).offered_extensions(cx)?.unwrap_or_default())
}

/// Return what is known of an extension of a database; None if it is not there.
///
/// ```console
/// $ salt '*' postgres.get_installed_extension hstore
/// ```
#[function]
pub fn get_installed_extension(
    cx: &Cx,
    /// The extension.
    name: String,
    #[group] connection: Connection,
) -> Result<Option<Dict>> {
    connection.conn(cx).extension(cx, &name)
}

/// Return what is known of an extension that could be installed; None if there is none.
///
/// ```console
/// $ salt '*' postgres.get_available_extension hstore
/// ```
#[function]
pub fn get_available_extension(
    cx: &Cx,
    /// The extension.
    name: String,
    #[group] connection: Connection,
) -> Result<Option<Value>> {
    Ok(connection.conn(cx).offered_extensions(cx)?.and_then(|all| all.get(name.as_str())))
}

/// Tell whether a database has an extension.
///
/// ```console
/// $ salt '*' postgres.is_installed_extension hstore
/// ```
#[function]
pub fn is_installed_extension(
    cx: &Cx,
    /// The extension.
    name: String,
    #[group] connection: Connection,
) -> Result<bool> {
    Ok(connection.conn(cx).extension(cx, &name)?.is_some())
}

/// Tell whether an extension could be installed.
///
/// ```console
/// $ salt '*' postgres.is_available_extension hstore
/// ```
#[function]
pub fn is_available_extension(
    cx: &Cx,
    /// The extension.
    name: String,
    #[group] connection: Connection,
) -> Result<bool> {
    Ok(connection.conn(cx).offered_extensions(cx)?.is_some_and(|all| all.contains(name.as_str())))
}

/// Return what would have to change about an extension.
///
/// ```console
/// $ salt '*' postgres.create_metadata hstore
/// ```
#[function]
pub fn create_metadata(
    cx: &Cx,
    /// The extension.
    name: String,
    /// The version wanted.
    ext_version: Option<String>,
    /// The schema wanted.
    schema: Option<String>,
    #[group] connection: Connection,
) -> Result<Value> {
    let conn = connection.conn(cx);
    Ok(Value::list(conn.extension_state(cx, &name, ext_version.as_deref(), schema.as_deref())?))
}

/// Install an extension, or bring it to the version and schema wanted.
///
/// ```console
/// $ salt '*' postgres.create_extension hstore maintenance_db=app
/// ```
#[function]
pub fn create_extension(
    cx: &Cx,
    /// The extension.
    name: String,
    /// It is fine if it is there.
    #[default(false)]
    #[shown(None::<bool>)]
    if_not_exists: bool,
    /// The schema it goes to.
    schema: Option<String>,
    /// Its version.
    ext_version: Option<String>,
    /// Accepted, as Salt does: no server of today knows it.
    from_version: Option<String>,
    #[group] connection: Connection,
) -> Result<bool> {
    let _ = from_version;
    connection.conn(cx).create_extension(
        cx,
        &name,
        if_not_exists,
        schema.as_deref(),
        ext_version.as_deref(),
    )
}

/// Remove an extension.
///
/// ```console
/// $ salt '*' postgres.drop_extension hstore maintenance_db=app
/// ```
#[function]
pub fn drop_extension(
    cx: &Cx,
    /// The extension.
    name: String,
    /// It is fine if it is not there.
    #[default(false)]
    #[shown(None::<bool>)]
    if_exists: bool,
    /// Not if something needs it; the usual.
    #[default(false)]
    #[shown(None::<bool>)]
    restrict: bool,
    /// With all that needs it.
    #[default(false)]
    #[shown(None::<bool>)]
    cascade: bool,
    #[group] connection: Connection,
) -> Result<bool> {
    let _ = (if_exists, restrict);
    connection.conn(cx).drop_extension(cx, &name, cascade)
}

/// Return the languages of a database.
///
/// ```console
/// $ salt '*' postgres.language_list app
/// ```
#[function]
pub fn language_list(
    cx: &Cx,
    /// The database.
    maintenance_db: String,
    #[group] connection: Account,
) -> Result<Dict> {
    Ok(connection.conn(cx, Some(&maintenance_db)).languages(cx)?.unwrap_or_default())
}

/// Tell whether a database has a language.
///
/// ```console
/// $ salt '*' postgres.language_exists plpgsql app
/// ```
#[function]
pub fn language_exists(
    cx: &Cx,
    /// The language.
    name: String,
    /// The database.
    maintenance_db: String,
    #[group] connection: Account,
) -> Result<bool> {
    let conn = connection.conn(cx, Some(&maintenance_db));
    Ok(conn.languages(cx)?.is_some_and(|all| all.contains(name.as_str())))
}

/// Install a language.
///
/// ```console
/// $ salt '*' postgres.language_create plperl app
/// ```
#[function]
pub fn language_create(
    cx: &Cx,
    /// The language.
    name: String,
    /// The database.
    maintenance_db: String,
    #[group] connection: Account,
) -> Result<bool> {
    let conn = connection.conn(cx, Some(&maintenance_db));
    if conn.languages(cx)?.is_some_and(|all| all.contains(name.as_str())) {
        return Ok(false);
    }
    conn.change(cx, &format!("CREATE LANGUAGE {}", identifier(&name)))
}

/// Remove a language.
///
/// ```console
/// $ salt '*' postgres.language_remove plperl app
/// ```
#[function]
pub fn language_remove(
    cx: &Cx,
    /// The language.
    name: String,
    /// The database.
    maintenance_db: String,
    #[group] connection: Account,
) -> Result<bool> {
    let conn = connection.conn(cx, Some(&maintenance_db));
    if !conn.languages(cx)?.is_some_and(|all| all.contains(name.as_str())) {
        return Ok(false);
    }
    conn.change(cx, &format!("DROP LANGUAGE {}", identifier(&name)))
}

/// Return all tablespaces: name → owner, location …
///
/// ```console
/// $ salt web1 postgres.tablespace_list
/// ```
#[function]
pub fn tablespace_list(cx: &Cx, #[group] connection: Connection) -> Result<Dict> {
    Ok(connection.conn(cx).tablespaces(cx)?.unwrap_or_default())
}

/// Tell whether there is a tablespace.
///
/// ```console
/// $ salt '*' postgres.tablespace_exists fast
/// ```
#[function]
pub fn tablespace_exists(
    cx: &Cx,
    /// The tablespace.
    name: String,
    #[group] connection: Connection,
) -> Result<bool> {
    Ok(connection.conn(cx).tablespaces(cx)?.is_some_and(|all| all.contains(name.as_str())))
}

/// Create a tablespace.
///
/// ```console
/// $ salt '*' postgres.tablespace_create fast /mnt/ssd
/// ```
#[function]
pub fn tablespace_create(
    cx: &Cx,
    /// The tablespace.
    name: String,
    /// Its folder.
    location: String,
    /// Its options.
    #[default(Dict::new())]
    #[shown(None::<bool>)]
    options: Dict,
    /// The role it belongs to.
    owner: Option<String>,
    #[group] connection: Connection,
) -> Result<bool> {
    connection.conn(cx).create_tablespace(cx, &name, &location, &options, owner.as_deref())
}

/// Change a tablespace.
///
/// ```console
/// $ salt '*' postgres.tablespace_alter fast new_owner=alice
/// ```
#[function]
pub fn tablespace_alter(
    cx: &Cx,
    /// The tablespace.
    name: String,
    #[group] server: Server,
    /// Its new name.
    new_name: Option<String>,
    /// Its new owner.
    new_owner: Option<String>,
    /// Options to set.
    #[default(Dict::new())]
    #[shown(None::<bool>)]
    set_option: Dict,
    /// An option to reset.
    reset_option: Option<String>,
    /// The user of this machine that runs the client.
    runas: Option<String>,
) -> Result<bool> {
    let how = AlterTablespace { new_name, new_owner, set_option, reset_option };
    server.conn(cx, runas.as_ref()).alter_tablespace(cx, &name, &how)
}

/// Remove a tablespace.
///
/// ```console
/// $ salt '*' postgres.tablespace_remove fast
/// ```
#[function]
pub fn tablespace_remove(
    cx: &Cx,
    /// The tablespace.
    name: String,
    #[group] connection: Connection,
) -> Result<bool> {
    connection.conn(cx).change(cx, &format!("DROP TABLESPACE {}", identifier(&name)))
}

/// Return the schemas of a database: name → owner and rights.
///
/// ```console
/// $ salt '*' postgres.schema_list app
/// ```
#[function]
pub fn schema_list(
    cx: &Cx,
    /// The database.
    dbname: String,
    #[group] connection: SchemaAccount,
) -> Result<Dict> {
    Ok(connection.conn(cx, Some(&dbname)).schemas(cx)?.unwrap_or_default())
}

/// Return owner and rights of a schema; None if there is none.
///
/// ```console
/// $ salt '*' postgres.schema_get app public
/// ```
#[function]
pub fn schema_get(
    cx: &Cx,
    /// The database.
    dbname: String,
    /// The schema.
    name: String,
    #[group] connection: SchemaAccount,
) -> Result<Option<Dict>> {
    connection.conn(cx, Some(&dbname)).schema(cx, &name)
}

/// Tell whether there is a schema.
///
/// ```console
/// $ salt '*' postgres.schema_exists app public
/// ```
#[function]
pub fn schema_exists(
    cx: &Cx,
    /// The database.
    dbname: String,
    /// The schema.
    name: String,
    #[group] connection: SchemaAccount,
) -> Result<bool> {
    Ok(connection.conn(cx, Some(&dbname)).schema(cx, &name)?.is_some())
}

/// Create a schema.
///
/// ```console
/// $ salt '*' postgres.schema_create app reports owner=alice
/// ```
#[function]
pub fn schema_create(
    cx: &Cx,
    /// The database.
    dbname: String,
    /// The schema.
    name: String,
    /// The role it belongs to.
    owner: Option<String>,
    #[group] connection: SchemaAccount,
) -> Result<bool> {
    connection.conn(cx, Some(&dbname)).create_schema(cx, &name, owner.as_deref())
}

/// Remove a schema.
///
/// ```console
/// $ salt '*' postgres.schema_remove app reports
/// ```
#[function]
pub fn schema_remove(
    cx: &Cx,
    /// The database.
    dbname: String,
    /// The schema.
    name: String,
    #[group] connection: SchemaAccount,
) -> Result<bool> {
    connection.conn(cx, Some(&dbname)).drop_schema(cx, &name)
}

/// Tell whether a folder holds the data of a server.
///
/// ```console
/// $ salt '*' postgres.datadir_exists /var/lib/postgresql/15/main
/// ```
#[function]
pub fn datadir_exists(
    cx: &Cx,
    /// The folder.
    name: String,
) -> Result<bool> {
    Ok(cx.host.is_file(&Path::new(&name).join("PG_VERSION"))?)
}

/// Finds `initdb`; Debian keeps it out of the way, one per version.
fn initdb(cx: &Cx) -> Option<String> {
    if let Some(found) = cx.host.which("initdb") {
        return Some(found.display().to_string());
    }
    let root = Path::new("/usr/lib/postgresql");
    let mut versions = cx.host.read_dir(root).unwrap_or_default();
    versions.sort_by_key(|name| name.to_string_lossy().parse::<u32>().unwrap_or(0));
    let found = versions.into_iter().rev().map(|version| root.join(version).join("bin/initdb"));
    found
        .into_iter()
        .find(|path| cx.host.is_file(path).unwrap_or(false))
        .map(|path| path.display().to_string())
}

/// Make the data folder of a server.
///
/// ```console
/// $ salt web1 postgres.datadir_init /srv/postgres
/// ```
#[function]
pub fn datadir_init(
    cx: &Cx,
    /// The folder.
    name: String,
    /// How local users prove who they are.
    #[default("password".to_owned())]
    auth: String,
    /// The first role.
    user: Option<String>,
    /// Its password.
    password: Option<String>,
    /// How letters are stored.
    #[default("UTF8".to_owned())]
    encoding: String,
    /// The locale.
    locale: Option<String>,
    /// The folder of the write-ahead log.
    waldir: Option<String>,
    /// Check data pages.
    #[default(false)]
    checksums: bool,
    /// The user of this machine the server will run as.
    runas: Option<String>,
) -> Result<bool> {
    if datadir_exists(cx, name.clone())? {
        tracing::info!("{name} already exists");
        return Ok(false);
    }
    let program = initdb(cx).ok_or_else(|| Error::failed("Unable to find initdb"))?;
    let user = user.unwrap_or_else(|| "postgres".into());
    let mut words = vec![
        program,
        format!("--pgdata={name}"),
        format!("--username={user}"),
        format!("--auth={auth}"),
        format!("--encoding={encoding}"),
    ];
    if let Some(locale) = locale {
        words.push(format!("--locale={locale}"));
    }
    if let Some(folder) = waldir {
        words.push(format!("--waldir={folder}"));
    }
    if checksums {
        words.push("--data-checksums".into());
    }
    let runas = runas.unwrap_or_else(|| "postgres".into());
    let secret = match &password {
        None => None,
        Some(password) => {
            let file = cmd::scratch_path(cx, None, ".pw");
            let owner = cx.host.user_named(&runas)?;
            let how = halite_spec::host::Write {
                mode: Some(0o600),
                uid: owner.as_ref().map(|user| user.uid),
                gid: owner.as_ref().map(|user| user.gid),
            };
            cx.host.write(&file, password.as_bytes(), &how)?;
            words.push(format!("--pwfile={}", file.display()));
            Some(file)
        }
    };
    let ran = cmd::plain(cx, words, Options { runas: Some(runas), ..Options::default() });
    if let Some(file) = secret {
        cx.host.remove_file(&file)?;
    }
    let ran = ran?;
    if !ran.ok() {
        tracing::error!("{}", ran.stderr);
    }
    Ok(ran.ok())
}
