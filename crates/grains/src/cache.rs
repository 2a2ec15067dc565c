//! The grains cache: `grains.cache.p` in the cache folder, msgpack, for minions that start often.

use std::{
    path::PathBuf,
    time::{Duration, UNIX_EPOCH},
};

use halite_spec::{Host, host};
use halite_value::{Dict, Value, msgpack};

fn file(opts: &Dict) -> Option<PathBuf> {
    let folder = opts.get("cachedir")?;
    Some(PathBuf::from(folder.as_str()?).join("grains.cache.p"))
}

fn is_set(opts: &Dict, name: &str) -> bool {
    opts.get(name).is_some_and(|value| value.truthy())
}

/// Returns the cached grains, if the options allow it and they are young enough.
pub fn load_cached(host: &dyn Host, opts: &Dict) -> Option<Dict> {
    if !is_set(opts, "grains_cache") || is_set(opts, "refresh_grains_cache") {
        return None;
    }
    let path = file(opts)?;
    let written = host.stat(&path, true).ok()?.mtime;
    let now = host.now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64();
    let limit = opts.get("grains_cache_expiration").and_then(|value| value.as_float());
    if (now - written).trunc() > limit.unwrap_or(300.0) {
        return None;
    }
    let bytes = host.read(&path).ok()?;
    let Ok(Value::Dict(grains)) = msgpack::from_slice(&bytes, msgpack::Text::Guess) else {
        return None;
    };
    // Templates unpack and compare it as the tuple it was.
    if let Some(Value::List(list)) = grains.get("osrelease_info") {
        grains.insert("osrelease_info", Value::tuple(list.to_vec()));
    }
    Some(grains).filter(|grains| !grains.is_empty())
}

/// Writes the cache, if the options ask for one. Only its owner may read it.
pub fn store_cached(host: &dyn Host, opts: &Dict, grains: &Dict) -> host::Result<()> {
    let Some(path) = file(opts).filter(|_| is_set(opts, "grains_cache")) else { return Ok(()) };
    let bytes = msgpack::to_vec(&Value::from(grains), msgpack::Dialect::Modern)
        .map_err(|error| host::Error::Other(format!("cannot cache the grains: {error}")))?;
    host.write(&path, &bytes, &host::Write { mode: Some(0o600), ..host::Write::default() })
}

#[cfg(test)]
mod tests {
    use halite_host::Fake;
    use halite_value::{dict, list};

    use super::*;

    fn opts(more: &Value) -> Dict {
        let opts = dict! { "cachedir" => "/var/cache/salt", "grains_cache" => true };
        let opts = opts.as_dict().unwrap().clone();
        opts.update(more.as_dict().unwrap());
        opts
    }

    fn grains() -> Dict {
        let grains =
            dict! { "os" => "Debian", "osrelease_info" => Value::tuple([12, 5]), "l" => list![1] };
        grains.as_dict().unwrap().clone()
    }

    #[test]
    fn there_and_back() {
        let fake = Fake::new();
        fake.dir("/var/cache/salt");
        let on = opts(&dict! {});
        store_cached(&fake, &on, &grains()).unwrap();
        assert_eq!(fake.stat("/var/cache/salt/grains.cache.p".as_ref(), true).unwrap().mode, 0o600);
        let back = load_cached(&fake, &on).unwrap();
        assert!(matches!(back.get("osrelease_info"), Some(Value::Tuple(_))));
        assert_eq!(Value::from(back), Value::from(grains()));
        assert!(load_cached(&fake, &opts(&dict! { "grains_cache" => false })).is_none());
        assert!(load_cached(&fake, &opts(&dict! { "refresh_grains_cache" => true })).is_none());
        fake.advance(Duration::from_secs(301));
        assert!(load_cached(&fake, &on).is_none(), "too old");
        assert!(load_cached(&fake, &opts(&dict! { "grains_cache_expiration" => 400 })).is_some());
        fake.file("/var/cache/salt/grains.cache.p", b"\xc1");
        assert!(load_cached(&fake, &on).is_none(), "broken");
    }

    #[test]
    fn off_by_default() {
        let fake = Fake::new();
        let before = fake.changes();
        store_cached(&fake, &Dict::new(), &grains()).unwrap();
        assert_eq!(fake.changes(), before);
    }
}
