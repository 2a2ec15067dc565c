//! `ldap`: who people are is known to a directory (OpenLDAP, Active Directory, FreeIPA).
//!
//! The options are Salt's `auth.ldap.*`. Somebody is who they say if the directory lets them in
//! with their password; under which name is found by a search with `binddn` and `bindpw`, or is
//! `binddn` itself with the user's name put into it. Groups come from the directory, too, and
//! targets of the form `ldap(OU=…)` are the computers below that branch.
//!
//! A directory takes a sign-in without a password for an anonymous one and says yes: an empty one
//! is never tried. What people type is made harmless before it gets into a filter or a name.

use std::path::PathBuf;

use halite_renderers::jinja::{Environment, NoLoader};
use halite_transport::{CertReqs, Ssl};
use halite_value::{Dict, SmolStr, Value, dict, entries};

use super::{Authenticator, text};
use crate::{
    Settings,
    ldap::{Connection, Error, Scope, escape, escape_name},
};

/// People in a directory.
pub(super) struct Ldap;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The options, with Salt's presets.
struct Config<'a>(&'a Settings);

impl Config<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        self.0.opts.get(&format!("auth.ldap.{name}")).filter(Value::truthy)
    }

    fn is(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn text(&self, name: &str, preset: &str) -> String {
        self.get(name).map_or_else(|| preset.to_owned(), |value| value.to_str().to_string())
    }

    fn needed(&self, name: &str) -> Result<String, Failed> {
        let value = self.get(name).map(|value| value.to_str().to_string());
        value.ok_or_else(|| format!("missing auth.ldap.{name} in master config").into())
    }

    fn basedn(&self) -> String {
        self.text("basedn", "")
    }

    fn account(&self) -> String {
        self.text("accountattributename", "memberUid")
    }

    /// An empty one is a wish, too: groups are then looked for everywhere.
    fn groupou(&self) -> String {
        match self.0.opts.get("auth.ldap.groupou") {
            Some(Value::Null) | None => "Groups".to_owned(),
            Some(given) if !given.truthy() => String::new(),
            Some(given) => given.to_str().to_string(),
        }
    }

    fn uri(&self) -> String {
        let scheme = if self.is("tls") { "ldaps" } else { "ldap" };
        let usual =
            format!("{scheme}://{}:{}", self.text("server", "localhost"), self.text("port", "389"));
        self.text("uri", &usual)
    }

    fn scope(&self) -> Result<Scope, Failed> {
        let Some(given) = self.0.opts.get("auth.ldap.scope") else { return Ok(Scope::Subtree) };
        match given.to_str().as_str() {
            "0" => Ok(Scope::Base),
            "1" => Ok(Scope::OneLevel),
            "2" => Ok(Scope::Subtree),
            other => Err(format!("auth.ldap.scope: `{other}` is not 0, 1 or 2").into()),
        }
    }

    fn ssl(&self) -> Ssl {
        let system = System::read();
        let verify = !self.is("no_verify") && system.verify;
        let cert_reqs = if verify { CertReqs::Required } else { CertReqs::None };
        Ssl { cert_reqs: Some(cert_reqs), ca_certs: system.authorities, ..Ssl::default() }
    }

    /// Connects without a name.
    fn open(&self) -> Result<Connection, Failed> {
        let (starttls, tls) = (self.is("starttls"), self.is("tls"));
        if starttls && tls {
            return Err("Cannot bind with both starttls and tls enabled.\
                        Please enable only one of the protocols"
                .into());
        }
        let (uri, ssl) = (self.uri(), self.ssl());
        let failed = |error: Error| format!("{uri}: {error}");
        Ok(Connection::open(&uri, &ssl, starttls).map_err(failed)?)
    }

    /// Connects, and signs in.
    fn bound(&self, dn: &str, password: &str) -> Result<Connection, Failed> {
        if password.is_empty() || dn.is_empty() {
            return Err("LDAP bind password is not set: password cannot be empty \
                        if auth.ldap.anonymous is False"
                .into());
        }
        let mut connection = self.open()?;
        connection.bind(dn, password).map_err(|error| {
            format!("Failed to bind to LDAP server {} as {dn}: {error}", self.uri())
        })?;
        Ok(connection)
    }

    /// Connects for searching, if that needs no user's password.
    fn searching(&self, user: &str) -> Result<Option<Connection>, Failed> {
        match (self.get("binddn"), self.get("bindpw")) {
            (Some(dn), Some(password)) => {
                self.bound(&as_name(&dn.to_str(), user)?, &password.to_str()).map(Some)
            }
            _ if self.is("anonymous") => self.open().map(Some),
            _ => Ok(None),
        }
    }

    /// Signs a user in.
    fn sign_in(&self, user: &str, password: &str) -> Result<Connection, Failed> {
        if user.is_empty() {
            return Err("a user without a name".into());
        }
        // differs: with `anonymous` and `auth_by_group_membership_only` Salt takes anybody's word
        // for who they are; here the password is asked for all the same.
        let dn = match (self.get("filter"), self.searching(user)?) {
            (Some(filter), Some(mut connection)) => {
                let filter = rendered(&filter.to_str(), &escape(user))?;
                let found = connection.search(&self.basedn(), self.scope()?, &filter, &["1.1"])?;
                match found.as_slice() {
                    [] => return Err(format!("Unable to find user {user}").into()),
                    [one] => one.dn().to_owned(),
                    _ => {
                        return Err(
                            format!("LDAP lookup found multiple results for user {user}").into()
                        );
                    }
                }
            }
            (None, Some(_)) => return Err("missing auth.ldap.filter in master config".into()),
            (_, None) => as_name(&self.needed("binddn")?, user)?,
        };
        self.bound(&dn, password)
    }

    fn groups(&self, user: &str, password: &str) -> Result<Vec<String>, Failed> {
        let mut connection = match self.searching(user)? {
            Some(connection) => connection,
            None => self.sign_in(user, password)?,
        };
        if self.is("activedirectory") {
            self.groups_in_active_directory(&mut connection, user)
        } else if self.is("freeipa") {
            self.groups_in_freeipa(&mut connection, user)
        } else {
            self.groups_below_a_branch(&mut connection, user)
        }
    }

    fn groups_in_active_directory(
        &self,
        connection: &mut Connection,
        user: &str,
    ) -> Result<Vec<String>, Failed> {
        let filter = format!(
            "(&({}={})(objectClass={}))",
            self.account(),
            escape(user),
            self.text("persontype", "person")
        );
        let base = self.basedn();
        let people = connection.search(&base, Scope::Subtree, &filter, &["distinguishedName"])?;
        let Some(person) = people.first() else {
            return Err(format!("Could not get distinguished name for user {user}").into());
        };
        let filter = format!(
            "(&(member={})(objectClass={}))",
            escape(person.dn()),
            self.text("groupclass", "posixGroup")
        );
        let found = connection.search(&base, Scope::Subtree, &filter, &["cn"])?;
        Ok(found.iter().filter_map(|group| group.values("cn").first().cloned()).collect())
    }

    fn groups_in_freeipa(
        &self,
        connection: &mut Connection,
        user: &str,
    ) -> Result<Vec<String>, Failed> {
        let filter = rendered(&self.needed("group_filter")?, &escape(user))?;
        let attributes = [self.account(), self.text("groupattribute", "memberOf")];
        let wanted = [attributes[0].as_str(), attributes[1].as_str(), "cn"];
        let base = self.needed("group_basedn")?;
        let mut groups = Vec::new();
        for entry in connection.search(&base, Scope::Subtree, &filter, &wanted)? {
            let members = attributes.iter().flat_map(|name| entry.values(name));
            let own = members.filter(|member| first_value(member) == user);
            groups.extend(own.map(|_| first_value(entry.dn()).to_owned()));
        }
        Ok(groups)
    }

    /// Groups that name their members, and people who name their groups.
    fn groups_below_a_branch(
        &self,
        connection: &mut Connection,
        user: &str,
    ) -> Result<Vec<String>, Failed> {
        let base = match self.groupou().as_str() {
            "" => self.basedn(),
            branch => format!("ou={branch},{}", self.basedn()),
        };
        let (account, attribute) = (self.account(), self.text("groupattribute", "memberOf"));
        let filter = format!(
            "(&({account}={})(objectClass={}))",
            escape(user),
            self.text("groupclass", "posixGroup")
        );
        let wanted = [account.as_str(), "cn", attribute.as_str()];
        let found = connection.search(&base, Scope::Subtree, &filter, &wanted)?;
        let mut groups = Vec::new();
        for entry in &found {
            if entry.values(&account).iter().any(|member| member == user) {
                groups.extend(entry.values("cn").first().cloned());
            }
        }
        for entry in found.iter().filter(|entry| first_value(entry.dn()) == user) {
            let named = entry.values(&attribute).iter();
            groups.extend(named.map(|group| first_value(group).to_owned()));
        }
        Ok(groups)
    }

    /// Returns the computers below a branch, as minions' ids.
    fn computers(&self, branch: &str) -> Result<Vec<String>, Failed> {
        let Some(mut connection) = self.searching("")? else {
            return Err("missing auth.ldap.bindpw in master config".into());
        };
        let found = connection.search(branch, Scope::Subtree, "(objectClass=computer)", &["cn"]);
        let found = match found {
            Err(Error::Refused { code: 32, .. }) => Vec::new(),
            other => other?,
        };
        let domains = self.get("minion_stripdomains").and_then(|all| all.items_of_sequence());
        let domains = domains.unwrap_or_default();
        let names = found.iter().filter_map(|computer| computer.values("cn").first());
        Ok(names
            .map(|name| {
                let name = name.to_lowercase();
                let short = domains.iter().find_map(|domain| {
                    name.strip_suffix(domain.to_str().as_str()).map(ToOwned::to_owned)
                });
                short.unwrap_or(name)
            })
            .collect())
    }
}

impl Authenticator for Ldap {
    fn check(&self, settings: &Settings, fields: &Dict) -> bool {
        let (Some(user), Some(password)) = (text(fields, "username"), text(fields, "password"))
        else {
            return false;
        };
        match Config(settings).sign_in(&user, &password) {
            Ok(_) => true,
            Err(error) => {
                tracing::error!("eauth `ldap`: {error}");
                false
            }
        }
    }

    fn groups(&self, settings: &Settings, fields: &Dict) -> Vec<SmolStr> {
        let user = text(fields, "username").unwrap_or_default();
        let password = text(fields, "password").unwrap_or_default();
        match Config(settings).groups(&user, &password) {
            Ok(groups) => groups.into_iter().map(SmolStr::from).collect(),
            Err(error) => {
                tracing::error!("eauth `ldap`: groups of {user}: {error}");
                Vec::new()
            }
        }
    }

    fn expand(&self, settings: &Settings, list: Vec<Value>) -> Vec<Value> {
        let mut out = Vec::new();
        for entry in list {
            let Value::Dict(map) = &entry else {
                out.push(entry);
                continue;
            };
            for (target, functions) in map {
                let name = target.to_str();
                let branch = name.strip_prefix("ldap(").and_then(|rest| rest.strip_suffix(')'));
                let Some(branch) = branch else {
                    out.push(entries! { target => functions }.into());
                    continue;
                };
                match Config(settings).computers(branch) {
                    Ok(ids) => out.extend(ids.into_iter().map(|id| dict! { id => &functions })),
                    Err(error) => tracing::error!("eauth `ldap`: {name}: {error}"),
                }
            }
        }
        out
    }
}

/// Returns `admins` of `cn=admins,ou=groups,dc=example`.
fn first_value(dn: &str) -> &str {
    let first = dn.split(',').next().unwrap_or_default();
    first.rsplit('=').next().unwrap_or_default()
}

/// Puts a user's name into a name of the directory.
fn as_name(template: &str, user: &str) -> Result<String, Failed> {
    // `{{ username }}@example.com` is no such name, but what Active Directory takes for one.
    let user = if template.contains('=') { escape_name(user) } else { user.into() };
    rendered(template, &user)
}

fn rendered(template: &str, user: &str) -> Result<String, Failed> {
    let context = entries! { "username" => user };
    let made = Environment::new().allow_undefined(true).render(template, &context, &NoLoader);
    Ok(made.map_err(|error| format!("{template}: {error}"))?.text)
}

/// What the system's own LDAP configuration says of certificates.
#[derive(Debug, PartialEq)]
struct System {
    /// Whom it trusts, if it says so.
    authorities: Vec<PathBuf>,
    verify: bool,
}

impl System {
    fn read() -> Self {
        let files = ["/etc/ldap/ldap.conf", "/etc/openldap/ldap.conf"];
        let content = files.iter().find_map(|file| std::fs::read_to_string(file).ok());
        let mut system = Self::of(&content.unwrap_or_default());
        system.authorities.retain(|path| path.exists());
        system
    }

    fn of(content: &str) -> Self {
        let mut system = Self { authorities: Vec::new(), verify: true };
        let lines = content.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
        for (name, value) in lines {
            let value = value.trim();
            match name.to_ascii_uppercase().as_str() {
                "TLS_CACERT" | "TLS_CACERTDIR" => system.authorities.push(value.into()),
                "TLS_REQCERT" => {
                    let lax = ["never", "allow"];
                    system.verify = !lax.iter().any(|word| value.eq_ignore_ascii_case(word));
                }
                _ => {}
            }
        }
        system
    }
}

#[cfg(test)]
mod tests {
    use halite_config::{Opts, Role};
    use halite_value::list;

    use super::*;
    use crate::ldap::directory::Directory;

    fn settings(more: Dict) -> Settings {
        let opts = entries! { "transport" => "zeromq", "publish_port" => 1, "ret_port" => 2 };
        for (name, value) in &more {
            opts.insert(format!("auth.ldap.{name}"), value);
        }
        Settings::from_opts(&Opts::new(Role::Master, opts)).unwrap()
    }

    fn user(name: &str, password: &str) -> Dict {
        entries! { "username" => name, "password" => password }
    }

    fn directory() -> String {
        Directory {
            passwords: vec![("cn=reader,dc=x", "r"), ("uid=ann,ou=people,dc=x", "secret")],
            searches: vec![
                ("dc=x", "(uid=ann)", vec![("uid=ann,ou=people,dc=x", vec![])]),
                ("dc=x", "(uid=two)", vec![("uid=a,dc=x", vec![]), ("uid=b,dc=x", vec![])]),
                ("dc=x", "(uid=\\2a)", vec![]),
                (
                    "ou=Groups,dc=x",
                    "(&(memberUid=ann)(objectClass=posixGroup))",
                    vec![
                        ("cn=ops,ou=Groups,dc=x", vec![("cn", "ops"), ("memberUid", "ann")]),
                        ("uid=ann,ou=Groups,dc=x", vec![("memberOf", "cn=web,ou=Groups,dc=x")]),
                    ],
                ),
                (
                    "ou=servers,dc=x",
                    "(objectClass=computer)",
                    vec![("cn=W1,dc=x", vec![("cn", "WEB1.x.org")])],
                ),
            ],
        }
        .serve()
    }

    #[test]
    fn the_systems_word_on_certificates() {
        let system = System::of("# TLS_REQCERT never\nBASE dc=x\n tls_cacert\t/a/ca.pem \n");
        assert_eq!(system, System { authorities: vec!["/a/ca.pem".into()], verify: true });
        assert!(!System::of("TLS_REQCERT never").verify && !System::of("TLS_REQCERT ALLOW").verify);
        assert!(System::of("TLS_REQCERT demand").verify && System::of("").verify);
    }

    #[test]
    fn found_by_a_search() {
        let settings = settings(entries! {
            "uri" => directory(), "basedn" => "dc=x", "binddn" => "cn=reader,dc=x",
            "bindpw" => "r", "filter" => "(uid={{ username }})",
            "minion_stripdomains" => list![".x.org"],
        });
        let check = |name: &str, password: &str| Ldap.check(&settings, &user(name, password));
        assert!(check("ann", "secret"));
        assert!(!check("ann", "wrong") && !check("two", "secret") && !check("", "secret"));
        assert!(!check("ann", ""), "no password is no proof");
        assert!(!check("*", "secret"), "a name is no pattern");
        assert!(!Ldap.check(&settings, &entries! { "username" => "ann" }));
        assert_eq!(Ldap.groups(&settings, &user("ann", "")), ["ops", "web"]);
        let given = vec!["test.*".into(), dict! { "ldap(ou=servers,dc=x)" => list!["pkg.*"] }];
        let expanded = Value::list(Ldap.expand(&settings, given));
        assert_eq!(expanded, list!["test.*", dict! { "web1" => list!["pkg.*"] }]);
    }

    #[test]
    fn found_by_name() {
        let uri = directory();
        let by_name = settings(entries! {
            "uri" => &uri, "basedn" => "dc=x", "binddn" => "uid={{ username }},ou=people,dc=x",
        });
        let check = |name: &str, password: &str| Ldap.check(&by_name, &user(name, password));
        assert!(check("ann", "secret") && !check("ann", "") && !check("bob", "secret"));
        assert!(!check("ann,ou=people,dc=x", "secret"), "a name stays in its place");
        assert_eq!(Ldap.groups(&by_name, &user("ann", "secret")), ["ops", "web"]);
        assert!(Ldap.groups(&by_name, &user("ann", "wrong")).is_empty());
        // Nobody's word is taken for it.
        let trusting = settings(entries! {
            "uri" => &uri, "basedn" => "dc=x", "filter" => "(uid={{ username }})",
            "anonymous" => true, "auth_by_group_membership_only" => true,
        });
        assert!(!Ldap.check(&trusting, &user("ann", "wrong")));
        assert!(Ldap.check(&trusting, &user("ann", "secret")));
        let nowhere = settings(entries! { "uri" => "ldap://127.0.0.1:1", "binddn" => "cn=x" });
        assert!(!Ldap.check(&nowhere, &user("ann", "secret")));
    }

    #[test]
    fn names() {
        assert_eq!(first_value("cn=admins,ou=groups,dc=x"), "admins");
        assert_eq!(first_value("ann"), "ann");
        let check = |template: &str, user: &str| as_name(template, user).unwrap();
        assert_eq!(check("uid={{ username }},dc=x", "ann"), "uid=ann,dc=x");
        assert_eq!(check("uid={{username}},dc=x", "a,ou=b "), "uid=a\\2cou\\3db\\20,dc=x");
        assert_eq!(check("{{ username|lower }}@x", "ANN"), "ann@x");
        assert_eq!(check("cn=reader,dc=x", "ann"), "cn=reader,dc=x");
    }
}
