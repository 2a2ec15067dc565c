//! Client.
pub struct Client;
