//! Filters that look at the machine or the network, through the embedding program's [`Host`].

use halite_value::{Dict, SmolStr, Value};

use super::{Row, hash::hash, words::text_arg};
use crate::jinja::{
    call::Bound,
    error::{Error, value_error},
    eval::{Interp, Result},
    host::Host,
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("which", "which(exe=)", |interp, args| {
        let exe = args.take(0);
        if !interp.truthy(&exe)? {
            return Ok(Value::Null);
        }
        let exe = interp.str_of(&exe)?;
        host(interp, "which")?.which(&exe).map(Value::from)
    }),
    ("file_hashsum", "get_hash(path, form=, chunk_size=)", |interp, args| {
        let path = path(interp, args)?;
        let form = match args.opt(1) {
            Some(form) => interp.str_of(&form)?,
            None => "sha256".into(),
        };
        if hash(&form, &[]).is_none() {
            return Err(value_error(format!("Invalid hash type: {form}")));
        }
        let data = host(interp, "file_hashsum")?.read_file(&path, usize::MAX)?;
        Ok(Value::from(hash(&form, &data)))
    }),
    ("is_empty", "is_empty(filename)", |interp, args| {
        let path = path(interp, args)?;
        let read = host(interp, "is_empty")?.read_file(&path, 1);
        Ok(Value::Bool(read.is_ok_and(|data| data.is_empty())))
    }),
    ("is_text_file", "is_text(fp_, blocksize=)", |interp, args| {
        let path = path(interp, args)?;
        let size = args.opt(1).and_then(|size| size.to_int()).unwrap_or(512);
        let read =
            host(interp, "is_text_file")?.read_file(&path, usize::try_from(size).unwrap_or(512));
        Ok(Value::Bool(read.is_ok_and(|data| !is_binary(&data))))
    }),
    ("is_bin_file", "is_binary(path)", |interp, args| {
        let path = path(interp, args)?;
        let read = host(interp, "is_bin_file")?.read_file(&path, 2048);
        Ok(Value::Bool(read.is_ok_and(|data| is_binary(&data))))
    }),
    ("list_files", "list_files(directory)", |interp, args| {
        let path = path(interp, args)?;
        host(interp, "list_files")?.list_files(&path).map(Value::from)
    }),
    ("get_uid", "get_uid(user=)", |interp, args| {
        let user = args.opt(0).filter(|user| !user.is_null());
        let user = user.map(|user| interp.str_of(&user)).transpose()?;
        host(interp, "get_uid")?.uid(user.as_deref()).map(Value::from)
    }),
    ("http_query", "query(url, method=, params=, data=, **kwargs)", |interp, args| {
        let options = Dict::new();
        let url = args.take(0);
        let url = interp.str_of(&url)?;
        for (at, name) in ["method", "params", "data"].into_iter().enumerate() {
            if let Some(value) = args.opt(at + 1) {
                options.insert(name, plain(&value));
            }
        }
        for (name, value) in args.more.drain(..) {
            options.insert(name, plain(&value));
        }
        host(interp, "http_query")?.http_query(&url, &options)
    }),
    ("dns_check", "dns_check(addr, port, safe=, ipv6=)", |interp, args| {
        let address = args.take(0);
        let address = interp.str_of(&address)?;
        let port = args.take(1);
        let port = interp.str_of(&port)?;
        let safe = args.take(2).truthy();
        let ipv6 = match args.opt(3) {
            None | Some(Value::Null) => None,
            Some(flag) => Some(flag.truthy()),
        };
        host(interp, "dns_check")?.dns_check(&address, &port, safe, ipv6).map(Value::from)
    }),
];

fn host<'e>(interp: &Interp<'e>, filter: &str) -> Result<&'e dyn Host> {
    interp.env.host.as_deref().ok_or_else(|| {
        Error::other(
            "CommandExecutionError",
            format!("the filter '{filter}' needs the machine, which this program does not offer to templates"),
        )
    })
}

fn path(interp: &mut Interp<'_>, args: &mut Bound) -> Result<SmolStr> {
    let value = args.take(0);
    text_arg(interp, &value, "expected str, bytes or os.PathLike object")
}

/// Tells text from binary data as Salt does.
fn is_binary(data: &[u8]) -> bool {
    if data.is_empty() {
        return false;
    }
    if data.contains(&0) {
        return true;
    }
    if std::str::from_utf8(data).is_ok() {
        return false;
    }
    let odd =
        data.iter().filter(|byte| !matches!(byte, 32..=126 | b'\n' | b'\r' | b'\t' | 8)).count();
    odd * 10 > data.len() * 3
}
