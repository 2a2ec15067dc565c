//! `auth`: tokens of users.

use halite_client::Request;
use halite_spec::{Cx, Rest, Result, function, module};
use halite_value::{Dict, Value};

use crate::master;

module! {
    /// Tokens of users.
    "auth": mk_token, del_token,
}

/// Make a token from a user's name and password.
///
/// ```console
/// $ salt-run auth.mk_token username=ann password=secret eauth=pam
/// ```
#[function]
pub fn mk_token(cx: &Cx, rest: Rest) -> Result<Value> {
    let given = rest.kwargs.entries().into_iter();
    let load: Dict = given.filter(|(name, _)| !name.to_str().starts_with("__")).collect();
    match master::connect(cx)?.call(&Request::MakeToken { load }) {
        // As in Salt there is no token then, and that is all a script sees.
        Err(error @ halite_client::Error::Refused { .. }) => {
            tracing::error!("{error}");
            Ok(Value::dict())
        }
        made => made.map_err(master::failed),
    }
}

/// End a token.
///
/// ```console
/// $ salt-run auth.del_token 5a6c5d1b9e
/// ```
#[function]
pub fn del_token(
    cx: &Cx,
    /// The token.
    token: String,
) -> Result<bool> {
    let request = Request::EndToken { token: token.into() };
    Ok(master::ask(cx, &request)?.truthy())
}
