//! `smtp`: mails, sent in the course of a run.

use halite_modules::smtp;
use halite_spec::{Applied, Args, Cx, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// Mails.
    "smtp": "send_msg" => SendMsg,
}

/// Send a mail.
#[derive(Args)]
pub struct SendMsg {
    /// The text.
    name: String,
    /// Who gets it; several with commas between them.
    recipient: String,
    /// The subject.
    subject: String,
    /// Who sends it.
    sender: Option<String>,
    /// The option that holds server, sender and account.
    profile: Option<String>,
    /// Speak TLS.
    #[default(Value::from("True"))]
    use_ssl: Value,
    /// Files to attach.
    attachments: Option<Vec<String>>,
}

impl State for SendMsg {
    type Seen = ();

    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        let text = format!("Need to send message to {}: {}", self.recipient, self.name);
        Ok(Plan::unknown().pending(text))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let sent = smtp::send_msg(
            cx,
            self.recipient.clone(),
            self.name.clone(),
            self.subject.clone(),
            self.sender.clone(),
            None,
            self.use_ssl.clone(),
            None,
            None,
            self.profile.clone(),
            self.attachments.clone(),
        );
        let verb = if sent.is_ok() { "Sent" } else { "Unable to send" };
        let mut comment = format!("{verb} message to {}: {}", self.recipient, self.name);
        if let Err(error) = &sent {
            comment = format!("{comment}\n{error}");
        }
        let mut applied = Applied::changes(halite_value::Dict::new()).comment(comment);
        applied.result = Some(sent.is_ok());
        Ok(applied)
    }
}
