//! What templates may ask of the machine.

use halite_value::{Dict, Value};

use super::error::Error;

/// The machine, as far as some filters need it. Everything has a default that refuses.
pub trait Host: Send + Sync {
    /// Returns where an executable is, if it is anywhere.
    fn which(&self, exe: &str) -> Result<Option<String>, Error> {
        let _ = exe;
        Err(refused("which"))
    }

    /// Returns the start of a file, at most this many bytes.
    fn read_file(&self, path: &str, most: usize) -> Result<Vec<u8>, Error> {
        let _ = (path, most);
        Err(refused("reading a file"))
    }

    /// Returns a directory and everything below it.
    fn list_files(&self, directory: &str) -> Result<Vec<String>, Error> {
        let _ = directory;
        Err(refused("list_files"))
    }

    /// Returns the number of a user; of the current one without a name.
    fn uid(&self, user: Option<&str>) -> Result<Option<i64>, Error> {
        let _ = user;
        Err(refused("get_uid"))
    }

    /// Asks a web server; the options are those of Salt's `http.query`.
    fn http_query(&self, url: &str, options: &Dict) -> Result<Value, Error> {
        let _ = (url, options);
        Err(refused("http_query"))
    }

    /// Resolves a name and tries to connect; returns the first address that answers.
    fn dns_check(
        &self,
        address: &str,
        port: &str,
        safe: bool,
        ipv6: Option<bool>,
    ) -> Result<String, Error> {
        let _ = (address, port, safe, ipv6);
        Err(refused("dns_check"))
    }
}

fn refused(what: &str) -> Error {
    Error::other("CommandExecutionError", format!("{what} is not offered to templates here"))
}
