//! `lowpkg`: the package database below the package manager: dpkg or rpm.

pub mod dpkg;
pub mod rpm;

use halite_spec::{Cx, Error, Rest, Result, function, module};
use halite_value::{Dict, Value, dict};

use crate::{
    pkg::{self, version},
    pkg_resource,
};

module! {
    /// Look into the package database below the package manager.
    "lowpkg": bin_pkg_info, unpurge, list_pkgs, file_list, file_dict, info, verify, modified, owner,
    version_cmp,
}

/// The databases we can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Database {
    Dpkg,
    Rpm,
}

fn database(cx: &Cx, function: &str) -> Result<Database> {
    let os = cx.grain_str("os").to_lowercase();
    match cx.grain_str("os_family").to_lowercase().as_str() {
        "debian" => Ok(Database::Dpkg),
        "redhat" | "suse" => Ok(Database::Rpm),
        _ if pkg::RPM_SYSTEMS.contains(&os.as_str()) => Ok(Database::Rpm),
        _ => Err(Error::NotFound(format!("lowpkg.{function}"))),
    }
}

/// Seconds since 1970 as `2024-01-31T12:00:00Z`; empty if that is no number.
fn utc(seconds: &str) -> String {
    let time = seconds.trim().parse::<i64>().ok();
    let time = time.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default()
}

fn names_of(rest: &Rest) -> Vec<String> {
    rest.args.iter().map(Value::to_string).collect()
}

/// Return name, version and architecture of a package file.
///
/// ```console
/// $ salt web1 lowpkg.bin_pkg_info /srv/packages/shop.deb
/// ```
#[function]
pub fn bin_pkg_info(
    cx: &Cx,
    /// The file, or where to get it.
    path: String,
    /// The environment it comes from.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Value> {
    let path = if pkg_resource::is_remote(&path) {
        let cached = cx.files.cache(&path, &saltenv)?;
        let cached = cached.ok_or_else(|| {
            Error::failed(format!("Unable to retrieve {path} from saltenv '{saltenv}'"))
        })?;
        cached.display().to_string()
    } else {
        path
    };
    Ok(match database(cx, "bin_pkg_info")? {
        Database::Dpkg => {
            let info = dpkg::bin_pkg_info(cx, &path)?;
            dict! { "name" => info.name, "version" => info.version, "arch" => info.arch }
        }
        Database::Rpm => match rpm::bin_pkg_info(cx, &path)? {
            Some(info) => dict! {
                "name" => info.name, "version" => info.version, "arch" => info.arch,
                "repoid" => info.repoid, "install_date" => Value::Null,
                "install_date_time_t" => Value::Null,
            },
            None => Value::Null,
        },
    })
}

/// Mark packages that are to be purged as to be installed.
///
/// ```console
/// $ salt web1 lowpkg.unpurge
/// ```
#[function]
pub fn unpurge(
    cx: &Cx,
    /// Packages.
    #[arg(by_position)]
    packages: Rest,
) -> Result<Dict> {
    if packages.args.is_empty() {
        return Ok(Dict::new());
    }
    pkg::provider(cx)?.unpurge(cx, &names_of(&packages))
}

/// Return the versions of installed packages.
///
/// ```console
/// $ salt '*' lowpkg.list_pkgs httpd
/// ```
#[function]
pub fn list_pkgs(
    cx: &Cx,
    /// Packages; all if none is given.
    packages: Rest,
) -> Result<Value> {
    match database(cx, "list_pkgs")? {
        Database::Dpkg => dpkg::list_pkgs(cx, &names_of(&packages)),
        Database::Rpm => rpm::list_pkgs(cx, &names_of(&packages), &packages.kwargs),
    }
}

/// Return the files of packages.
///
/// ```console
/// $ salt web1 lowpkg.file_list
/// ```
#[function]
pub fn file_list(
    cx: &Cx,
    /// Packages; all if none is given.
    packages: Rest,
) -> Result<Value> {
    match database(cx, "file_list")? {
        Database::Dpkg => dpkg::file_list(cx, &names_of(&packages)),
        Database::Rpm => rpm::file_list(cx, &names_of(&packages), &packages.kwargs),
    }
}

/// Return the files of packages, by package.
///
/// ```console
/// $ salt web1 lowpkg.file_dict
/// ```
#[function]
pub fn file_dict(
    cx: &Cx,
    /// Packages; all if none is given.
    packages: Rest,
) -> Result<Value> {
    match database(cx, "file_dict")? {
        Database::Dpkg => dpkg::file_dict(cx, &names_of(&packages)),
        Database::Rpm => rpm::file_dict(cx, &names_of(&packages), &packages.kwargs),
    }
}

/// Return what is known of installed packages.
///
/// ```console
/// $ salt '*' lowpkg.info bash
/// ```
#[function]
pub fn info(
    cx: &Cx,
    /// Packages; all if none is given.
    packages: Rest,
) -> Result<Dict> {
    let failhard = packages.kwargs.get("failhard").is_none_or(|flag| flag.truthy());
    match database(cx, "info")? {
        Database::Dpkg => dpkg::info(cx, &names_of(&packages), failhard),
        Database::Rpm => rpm::info(cx, &names_of(&packages), &packages.kwargs),
    }
}

/// Return the files of packages that differ from what was installed; rpm only.
///
/// ```console
/// $ salt web1 lowpkg.verify
/// ```
#[function]
pub fn verify(
    cx: &Cx,
    /// Packages; all if none is given.
    packages: Rest,
) -> Result<Dict> {
    match database(cx, "verify")? {
        Database::Dpkg => Err(Error::NotFound("lowpkg.verify".into())),
        Database::Rpm => rpm::verify(cx, &names_of(&packages), &packages.kwargs),
    }
}

/// Return the changed files of packages with the kind of change; rpm only.
///
/// ```console
/// $ salt web1 lowpkg.modified
/// ```
#[function]
pub fn modified(
    cx: &Cx,
    /// Packages, and kinds of change with yes or no.
    packages: Rest,
) -> Result<Value> {
    match database(cx, "modified")? {
        Database::Dpkg => Err(Error::NotFound("lowpkg.modified".into())),
        Database::Rpm => rpm::modified(cx, &names_of(&packages), &packages.kwargs),
    }
}

/// Return the package that owns a file; rpm only.
///
/// ```console
/// $ salt web1 lowpkg.owner /usr/sbin/nginx
/// ```
#[function]
pub fn owner(
    cx: &Cx,
    /// Paths.
    paths: Rest,
) -> Result<Value> {
    match database(cx, "owner")? {
        Database::Dpkg => Err(Error::NotFound("lowpkg.owner".into())),
        Database::Rpm => rpm::owner(cx, &names_of(&paths), &paths.kwargs),
    }
}

/// Compare two versions: -1, 0 or 1; rpm only.
///
/// ```console
/// $ salt '*' lowpkg.version_cmp 0.2-001 0.2.0.1-002
/// ```
#[function]
pub fn version_cmp(
    cx: &Cx,
    /// The one.
    ver1: String,
    /// The other.
    ver2: String,
    /// Leave epochs out.
    #[default(false)]
    ignore_epoch: bool,
) -> Result<i64> {
    let strip = |text: &str| {
        if ignore_epoch { version::without_epoch(text).to_owned() } else { text.to_owned() }
    };
    match database(cx, "version_cmp")? {
        Database::Dpkg => Err(Error::NotFound("lowpkg.version_cmp".into())),
        Database::Rpm => Ok(version::compare_rpm(&strip(&ver1), &strip(&ver2)) as i64),
    }
}
