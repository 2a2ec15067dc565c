//! What a local client may ask the master in clear, with its credentials: a closed list.

use halite_value::{Dict, SmolStr, Value};

use crate::{Error, Fields};

/// A request of `salt`, of an API, or of a script.
#[derive(Clone, Debug)]
pub enum ClientRequest {
    Ping(Dict),
    Publish(Box<Publish>),
    Runner { fun: SmolStr, kwarg: Dict, load: Dict, credentials: Credentials },
    Wheel { fun: SmolStr, load: Dict, credentials: Credentials },
    MakeToken { load: Dict },
    GetToken { token: Option<SmolStr> },
}

/// Who asks, and the proof.
#[derive(Clone)]
pub enum Credentials {
    /// The key of a local user, from the master's cache folder.
    Key {
        user: SmolStr,
        key: SmolStr,
    },
    Token(SmolStr),
    Eauth {
        eauth: SmolStr,
        fields: Dict,
    },
    Missing,
}

/// Never shows a secret.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key { user, .. } => write!(f, "Key({user})"),
            Self::Token(_) => f.write_str("Token"),
            Self::Eauth { eauth, .. } => write!(f, "Eauth({eauth})"),
            Self::Missing => f.write_str("Missing"),
        }
    }
}

impl Credentials {
    /// Reads what a request carries; the first kind found counts.
    pub fn read(load: &Dict) -> Self {
        let text = |name: &str| load.get(name).and_then(|value| value.as_str().map(SmolStr::from));
        if let Some(token) = text("token") {
            return Self::Token(token);
        }
        if let Some(eauth) = text("eauth") {
            return Self::Eauth { eauth, fields: load.shallow_copy() };
        }
        match (text("key"), text("user")) {
            (Some(key), user) => Self::Key { user: user.unwrap_or_else(|| "root".into()), key },
            _ => Self::Missing,
        }
    }
}

/// A wish to publish a job.
#[derive(Clone, Debug)]
pub struct Publish {
    pub tgt: Value,
    pub tgt_type: SmolStr,
    pub fun: Value,
    pub arg: Vec<Value>,
    pub ret: SmolStr,
    /// Empty: the master chooses.
    pub jid: SmolStr,
    pub user: SmolStr,
    pub kwargs: Dict,
    pub timeout: Option<i64>,
    pub credentials: Credentials,
}

impl Publish {
    pub fn read(load: &Dict) -> Result<Self, Error> {
        let fields = Fields(load);
        let kwargs = fields.dict_or_empty("kwargs")?;
        // Tokens and passwords travel in `kwargs`, the local key beside them.
        let credentials = match Credentials::read(&kwargs) {
            Credentials::Missing => Credentials::read(load),
            found => found,
        };
        Ok(Self {
            tgt: fields.value("tgt")?,
            tgt_type: fields.text_or("tgt_type", "glob")?,
            fun: fields.value("fun")?,
            arg: fields.list_or_empty("arg")?,
            ret: fields.text_or("ret", "")?,
            jid: fields.text_or("jid", "")?,
            user: fields.text_or("user", "")?,
            kwargs,
            timeout: fields.optional("to").and_then(|seconds| seconds.to_int()),
            credentials,
        })
    }
}

impl ClientRequest {
    pub fn read(load: &Dict) -> Result<Self, Error> {
        let fields = Fields(load);
        let command = fields.text("cmd")?;
        Ok(match command.as_str() {
            "ping" => Self::Ping(load.clone()),
            "publish" => Self::Publish(Box::new(Publish::read(load)?)),
            "runner" => Self::Runner {
                fun: fields.text("fun")?,
                kwarg: fields.dict_or_empty("kwarg")?,
                load: load.shallow_copy(),
                credentials: Credentials::read(load),
            },
            "wheel" => Self::Wheel {
                fun: fields.text("fun")?,
                load: load.shallow_copy(),
                credentials: Credentials::read(load),
            },
            "mk_token" => Self::MakeToken { load: load.shallow_copy() },
            "get_token" => {
                Self::GetToken { token: fields.optional("token").map(|token| token.to_str()) }
            }
            other => return Err(Error::Unknown(other.to_owned())),
        })
    }
}
