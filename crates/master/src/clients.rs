//! What local clients of Salt ask in clear, each request with its own credentials.
//!
//! `publish`, `runner`, `wheel`, `mk_token`, `get_token`, `ping`: nothing else is known. Missing,
//! empty and wrong credentials are the same refusal.

use std::sync::Arc;

use halite_value::{Dict, SmolStr, Value, dict};
use halite_wire::{ClientRequest, Credentials, Publish};

use crate::{
    Counters, Error, Master, acl, blocking,
    eauth::Authenticator,
    publish::{self, Refusal, Rights, Wish},
    runners::{self, Call},
    tokens::Tokens,
};

/// Who a caller is, and what they may do.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: SmolStr,
    pub(crate) rights: Rights,
    /// Proven by the key of the master's own user, as a syndic does.
    pub(crate) is_master_user: bool,
}

/// Which kind of credentials failed, for Salt's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    User,
    Token,
    Eauth,
}

/// Answers a clear request.
pub(crate) async fn answer(master: &Arc<Master>, load: &Dict) -> Value {
    let request = match ClientRequest::read(load) {
        Ok(request) => request,
        Err(error) => {
            Counters::count(&master.counters.unknown_commands);
            match &error {
                halite_wire::Error::Unknown(command) => crate::requests::not_exposed(command),
                _ => tracing::debug!("A clear request is refused: {error}"),
            }
            return Value::dict();
        }
    };
    match request {
        ClientRequest::Ping(load) => load.into(),
        ClientRequest::Publish(publish) => answer_publish(master, *publish).await,
        ClientRequest::Runner { fun, kwarg, load, credentials } => {
            answer_runner(master, fun, kwarg, &load, credentials).await
        }
        ClientRequest::Wheel { fun, load, credentials } => {
            answer_wheel(master, fun, &load, credentials).await
        }
        ClientRequest::MakeToken { load } => {
            let owner = master.clone();
            let made = blocking(move || make_token(&owner, &load)).await;
            match made {
                Ok(Some(token)) => token.into(),
                _ => {
                    tracing::warn!("Authentication failure of type \"eauth\" occurred.");
                    "".into()
                }
            }
        }
        ClientRequest::GetToken { token: None } => false.into(),
        ClientRequest::GetToken { token: Some(token) } => {
            let owner = master.clone();
            let found = blocking(move || owner.tokens.get(&token)).await;
            found.ok().flatten().map_or_else(Value::dict, Value::from)
        }
    }
}

fn error(name: &str, message: impl Into<SmolStr>) -> Value {
    dict! { "error" => dict! { "name" => name, "message" => message.into() } }
}

async fn answer_publish(master: &Arc<Master>, publish: Publish) -> Value {
    let credentials = publish.credentials.clone();
    let caller = match authenticate(master, credentials).await {
        Ok(caller) => caller,
        Err(kind) => {
            tracing::warn!("Authentication failure of type \"{}\" occurred.", kind_name(kind));
            let refusal = Refusal::authentication();
            fire_error(master, &publish, &refusal);
            return error(refusal.name, refusal.message);
        }
    };
    let mut rights = caller.rights.clone();
    // What a syndic passes on for its user; believed only with the master's own key.
    if let (true, Some(list)) = (caller.is_master_user, publish.kwargs.get("auth_list"))
        && let Some(list) = list.items_of_sequence()
        && !list.is_empty()
    {
        rights = Rights::List(list);
    }
    let user = match &publish.credentials {
        Credentials::Key { .. } => publish.user.clone(),
        _ => caller.name.clone(),
    };
    let jid = publish.jid.clone();
    let wish = Wish {
        tgt: publish.tgt.clone(),
        tgt_type: publish.tgt_type.clone(),
        fun: publish.fun.clone(),
        arg: publish.arg.clone(),
        ret: publish.ret.clone(),
        jid,
        user,
        kwargs: publish.kwargs.clone(),
        timeout: publish.timeout,
        id: None,
        on_disk: true,
    };
    match publish::publish(master, wish, rights, false).await {
        Ok((done, _)) => {
            let published = done.published;
            let load = if published.jid.is_empty() {
                dict! {
                    "jid" => (), "minions" => Vec::<Value>::new(), "error" => published.error,
                }
            } else {
                dict! {
                    "jid" => &published.jid, "minions" => Value::list(&published.minions),
                    "missing" => Value::list(&published.missing),
                }
            };
            dict! { "enc" => "clear", "load" => load }
        }
        Err(refusal) => {
            fire_error(master, &publish, &refusal);
            error(refusal.name, refusal.message)
        }
    }
}

/// Salt tells the bus about a refused job that has an id.
fn fire_error(master: &Master, publish: &Publish, refusal: &Refusal) {
    let Ok(jid) = halite_wire::Jid::new(&publish.jid) else { return };
    let told = error(refusal.name, refusal.message.as_str());
    let data = halite_value::entries! {
        "jid" => &jid, "tgt" => &publish.tgt, "fun" => &publish.fun, "user" => &publish.user,
        "error" => told.get("error"),
    };
    master.bus.fire(format!("salt/job/{jid}/error"), data);
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "user",
        Kind::Token => "token",
        Kind::Eauth => "eauth",
    }
}

fn failure(kind: Kind, user: &str) -> Value {
    match kind {
        Kind::User => error(
            "UserAuthenticationError",
            format!("Authentication failure of type \"user\" occurred for user {user}."),
        ),
        Kind::Token => {
            error("TokenAuthenticationError", "Authentication failure of type \"token\" occurred.")
        }
        Kind::Eauth => error(
            "EauthAuthenticationError",
            format!("Authentication failure of type \"eauth\" occurred for user {user}."),
        ),
    }
}

fn user_of(load: &Dict) -> SmolStr {
    load.get("username").map_or_else(|| "UNKNOWN".into(), |name| name.to_str())
}

async fn answer_runner(
    master: &Arc<Master>,
    fun: SmolStr,
    kwarg: Dict,
    load: &Dict,
    credentials: Credentials,
) -> Value {
    let kind = kind_of(&credentials);
    let caller = match authenticate(master, credentials).await {
        Ok(caller) => caller,
        Err(kind) => return failure(kind, &user_of(load)),
    };
    let (args, kwargs) = arguments(&kwarg);
    if let Err(refused) = may_special(&caller, "runner", &fun, &args, &kwargs, kind) {
        return refused;
    }
    let jid = master.jobs.next_jid();
    let call = Call { function: fun, args, kwargs, user: caller.name, jid: jid.clone() };
    let owner = master.clone();
    tokio::spawn(async move { runners::run(&owner, call).await });
    dict! { "tag" => format!("salt/run/{jid}"), "jid" => &jid }
}

async fn answer_wheel(
    master: &Arc<Master>,
    fun: SmolStr,
    load: &Dict,
    credentials: Credentials,
) -> Value {
    let kind = kind_of(&credentials);
    let caller = match authenticate(master, credentials).await {
        Ok(caller) => caller,
        Err(kind) => return failure(kind, &user_of(load)),
    };
    let flat = load.shallow_copy();
    // What tells the client how to go about it is no argument of the function.
    for own in [
        "cmd",
        "fun",
        "key",
        "user",
        "token",
        "eauth",
        "username",
        "password",
        "client",
        "print_event",
        "full_return",
        "__jid__",
        "__tag__",
        "__user__",
    ] {
        flat.remove(own);
    }
    let (args, kwargs) = arguments(&flat);
    if let Err(refused) = may_special(&caller, "wheel", &fun, &args, &kwargs, kind) {
        return refused;
    }
    let jid = master.jobs.next_jid();
    let call = Call { function: fun, args, kwargs, user: caller.name, jid: jid.clone() };
    let data = runners::wheel(master, call).await.shallow_copy();
    let tag = format!("salt/wheel/{jid}");
    data.insert("tag", &tag);
    dict! { "tag" => tag, "data" => data }
}

/// Takes `arg` and `kwarg` out of a map; what is beside them are keyword arguments too.
fn arguments(map: &Dict) -> (Vec<Value>, Dict) {
    let rest = map.shallow_copy();
    let args = rest.remove("arg").and_then(|args| args.items_of_sequence()).unwrap_or_default();
    if let Some(Value::Dict(kwargs)) = rest.remove("kwarg") {
        rest.update(&kwargs);
    }
    let call = halite_wire::Args::read(&args);
    rest.update(&call.kwargs);
    rest.remove("__kwarg__");
    (call.args, rest)
}

fn may_special(
    caller: &Caller,
    form: &str,
    fun: &str,
    args: &[Value],
    kwargs: &Dict,
    kind: Kind,
) -> Result<(), Value> {
    let Rights::List(list) = &caller.rights else { return Ok(()) };
    if fun.split('.').count() != 2 {
        return Err(error(
            "SaltInvocationError",
            "A command invocation error occurred: Check syntax.",
        ));
    }
    if acl::allows_special(list, form, fun, args, kwargs) {
        return Ok(());
    }
    // Salt has one word for both here: what was not allowed was not authenticated.
    Err(failure(kind, &caller.name))
}

fn kind_of(credentials: &Credentials) -> Kind {
    match credentials {
        Credentials::Token(_) => Kind::Token,
        Credentials::Eauth { .. } => Kind::Eauth,
        Credentials::Key { .. } | Credentials::Missing => Kind::User,
    }
}

/// What somebody is told whose runner or wheel function was refused.
pub(crate) fn refusal_of(credentials: &Dict) -> Refusal {
    let (name, message) = match Credentials::read(credentials) {
        Credentials::Token(_) => (
            "TokenAuthenticationError",
            "Authentication failure of type \"token\" occurred.".to_owned(),
        ),
        _ => (
            "EauthAuthenticationError",
            format!(
                "Authentication failure of type \"eauth\" occurred for user {}.",
                user_of(credentials)
            ),
        ),
    };
    Refusal { name, message }
}

/// Signs a local program in that brought credentials.
pub(crate) async fn sign_in(master: &Arc<Master>, fields: &Dict) -> Result<Caller, Refusal> {
    let credentials = Credentials::read(fields);
    authenticate(master, credentials).await.map_err(|kind| {
        tracing::warn!("Authentication failure of type \"{}\" occurred.", kind_name(kind));
        Refusal::authentication()
    })
}

/// Makes a token for a local program.
pub(crate) async fn new_token(master: &Arc<Master>, load: Dict) -> Result<Dict, Refusal> {
    let owner = master.clone();
    let made = blocking(move || make_token(&owner, &load)).await;
    made.ok().flatten().ok_or_else(|| {
        tracing::warn!("Authentication failure of type \"eauth\" occurred.");
        Refusal::authentication()
    })
}

async fn authenticate(master: &Arc<Master>, credentials: Credentials) -> Result<Caller, Kind> {
    let owner = master.clone();
    blocking(move || check(&owner, &credentials)).await.map_err(|_: Error| Kind::User)?
}

fn check(master: &Master, credentials: &Credentials) -> Result<Caller, Kind> {
    match credentials {
        Credentials::Missing => Err(Kind::User),
        Credentials::Key { user, key } => check_key(master, user, key).ok_or(Kind::User),
        Credentials::Token(token) => {
            let data = master.tokens.get(token).ok_or(Kind::Token)?;
            let eauth = data.get("eauth").map(|eauth| eauth.to_str()).unwrap_or_default();
            let config = external_auth(master, &eauth).ok_or(Kind::Token)?;
            let name = Tokens::name(&data);
            // A token lives no longer than the account it was made for.
            let system = master.authenticators.get(eauth.as_str()).ok_or(Kind::Token)?;
            if name.is_empty() || !system.is_alive(&master.settings, &name) {
                return Err(Kind::Token);
            }
            let groups: Vec<SmolStr> = data
                .get("groups")
                .and_then(|groups| groups.items_of_sequence())
                .unwrap_or_default()
                .iter()
                .map(Value::to_str)
                .collect();
            let kept = data.get("auth_list").and_then(|list| list.items_of_sequence());
            let list = match kept {
                Some(list) if master.settings.opts.bool("keep_acl_in_token") => list,
                _ => {
                    let known = halite_value::entries! { "username" => &name, "eauth" => &eauth };
                    let own = acl_of(master, system.as_ref(), &known);
                    own.unwrap_or_else(|| {
                        let list = permissions(master, &config, &name, &groups);
                        system.expand(&master.settings, list)
                    })
                }
            };
            Ok(Caller { name, rights: Rights::List(list), is_master_user: false })
        }
        Credentials::Eauth { eauth, fields } => {
            let (name, list, _) = check_eauth(master, eauth, fields).ok_or(Kind::Eauth)?;
            Ok(Caller { name, rights: Rights::List(list), is_master_user: false })
        }
    }
}

fn external_auth(master: &Master, eauth: &str) -> Option<Dict> {
    match master.settings.opts.dict("external_auth").get(eauth) {
        Some(Value::Dict(config)) => Some(config),
        // Enabled, but nobody may do anything.
        Some(Value::Null) => Some(Dict::new()),
        _ => None,
    }
}

fn permissions(master: &Master, config: &Dict, name: &str, groups: &[SmolStr]) -> Vec<Value> {
    acl::list_for(config, name, groups, master.settings.opts.bool("permissive_acl"))
}

/// Asks the system what somebody may do, or the one `eauth_acl_module` names in its place.
fn acl_of(master: &Master, system: &dyn Authenticator, fields: &Dict) -> Option<Vec<Value>> {
    let other = master.settings.opts.opt_str("eauth_acl_module").filter(|name| !name.is_empty());
    match other {
        Some(name) => master.authenticators.get(name.as_str())?.acl(&master.settings, fields),
        None => system.acl(&master.settings, fields),
    }
}

/// Checks an external sign-in: name, permissions, groups.
fn check_eauth(
    master: &Master,
    eauth: &str,
    fields: &Dict,
) -> Option<(SmolStr, Vec<Value>, Vec<SmolStr>)> {
    let config = external_auth(master, eauth).or_else(|| {
        tracing::warn!("The eauth system \"{eauth}\" is not enabled");
        None
    })?;
    let system = master.authenticators.get(eauth)?;
    if !system.check(&master.settings, fields) {
        return None;
    }
    let name = fields.get("username").map(|name| name.to_str())?;
    let groups = system.groups(&master.settings, fields);
    let own = acl_of(master, system.as_ref(), fields);
    let list = own.unwrap_or_else(|| {
        system.expand(&master.settings, permissions(master, &config, &name, &groups))
    });
    Some((name, list, groups))
}

fn make_token(master: &Master, load: &Dict) -> Option<Dict> {
    let eauth = load.get("eauth")?.to_str();
    let (name, list, groups) = check_eauth(master, &eauth, load)?;
    let opts = &master.settings.opts;
    let data = halite_value::entries! { "name" => &name, "eauth" => &eauth };
    if opts.bool("keep_acl_in_token") {
        data.insert("auth_list", list);
    }
    if !groups.is_empty() {
        data.insert("groups", Value::list(groups));
    }
    let usual = opts.float("token_expire");
    let wanted = load.get("token_expire").and_then(|seconds| seconds.as_float());
    let seconds = wanted.filter(|_| may_choose_expire(master, &eauth, &name)).unwrap_or(usual);
    master.tokens.make(&data, seconds).inspect_err(|error| tracing::error!("{error}")).ok()
}

fn may_choose_expire(master: &Master, eauth: &str, name: &str) -> bool {
    match master.settings.opts.get("token_expire_user_override") {
        Some(Value::Bool(flag)) => flag,
        Some(Value::Dict(by)) => by
            .get(eauth)
            .and_then(|names| names.items_of_sequence())
            .is_some_and(|names| names.iter().any(|own| *own == *name)),
        _ => false,
    }
}

/// Checks a local user's key, in Salt's order.
fn check_key(master: &Master, user: &str, key: &str) -> Option<Caller> {
    let owners = master.secrets.users_of_key(key);
    if owners.is_empty() {
        return None;
    }
    let own = &master.settings.user;
    let is_master_user = owners.iter().any(|owner| owner == own || owner == "root");
    let all = |name: &str| Caller { name: name.into(), rights: Rights::All, is_master_user };
    let opts = &master.settings.opts;
    let limited = |name: &str| {
        let list = acl::publisher_list(&opts.dict("publisher_acl"), name);
        // Nothing allowed is not «everything».
        (!list.is_empty()).then(|| Caller {
            name: name.into(),
            rights: Rights::List(list),
            is_master_user: false,
        })
    };
    if let Some(name) = user.strip_prefix("sudo_") {
        // differs: Salt takes any user's key here; only the master's own user can sudo.
        if !is_master_user {
            return None;
        }
        return if opts.bool("sudo_acl") && !opts.dict("publisher_acl").is_empty() {
            limited(name)
        } else {
            Some(all(user))
        };
    }
    if user == "root" || user == own {
        // differs: Salt takes any user's key for the name root; only the master's own will do.
        return is_master_user.then(|| all(user));
    }
    if is_master_user {
        return Some(all(user));
    }
    owners.iter().any(|owner| owner == user).then(|| limited(user)).flatten()
}
