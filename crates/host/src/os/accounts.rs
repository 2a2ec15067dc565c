//! Users and groups, through the system's name service (files, LDAP, SSSD, systemd …).
//!
//! Names that are not UTF-8 are shown with replacement characters. Enumerating is guarded by a
//! lock: the C library keeps one position for the whole process.
#![expect(unsafe_code, reason = "the C library's enumeration has no safe wrapper")]

use std::{
    ffi::{CStr, CString, c_char},
    ptr,
};

use halite_spec::host::{Error, Group, Result, User};
use nix::errno::Errno;
use parking_lot::Mutex;

static ENUMERATING: Mutex<()> = Mutex::new(());

pub(super) fn user_named(name: &str) -> Result<Option<User>> {
    if name.contains('\0') {
        return Ok(None);
    }
    found(nix::unistd::User::from_name(name), user)
}

pub(super) fn user_with_id(uid: u32) -> Result<Option<User>> {
    found(nix::unistd::User::from_uid(uid.into()), user)
}

pub(super) fn group_named(name: &str) -> Result<Option<Group>> {
    if name.contains('\0') {
        return Ok(None);
    }
    found(nix::unistd::Group::from_name(name), group)
}

pub(super) fn group_with_id(gid: u32) -> Result<Option<Group>> {
    found(nix::unistd::Group::from_gid(gid.into()), group)
}

/// Some name services answer «not found» with an error.
fn found<A, B>(answer: nix::Result<Option<A>>, map: fn(A) -> B) -> Result<Option<B>> {
    match answer {
        Ok(entry) => Ok(entry.map(map)),
        Err(Errno::ENOENT | Errno::ESRCH) => Ok(None),
        Err(error) => Err(Error::Other(format!("cannot look up an account: {}", error.desc()))),
    }
}

fn text(text: &CStr) -> String {
    text.to_string_lossy().into_owned()
}

fn user(user: nix::unistd::User) -> User {
    User {
        name: user.name,
        uid: user.uid.as_raw(),
        gid: user.gid.as_raw(),
        gecos: text(&user.gecos),
        home: user.dir.to_string_lossy().into_owned(),
        shell: user.shell.to_string_lossy().into_owned(),
        passwd: text(&user.passwd),
    }
}

fn group(group: nix::unistd::Group) -> Group {
    Group {
        name: group.name,
        gid: group.gid.as_raw(),
        members: group.mem,
        passwd: text(&group.passwd),
    }
}

/// # Safety
/// The pointer is null or names a text that lives during the call.
unsafe fn owned(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the caller vouches for the rest.
    text(unsafe { CStr::from_ptr(pointer) })
}

pub(super) fn users() -> Vec<User> {
    let _guard = ENUMERATING.lock();
    let mut users = Vec::new();
    // SAFETY: nobody else in this program enumerates while the lock is held, so each entry stays
    // valid until the next call, and all of it is copied before that.
    unsafe {
        libc::setpwent();
        while let Some(entry) = ptr::NonNull::new(libc::getpwent()) {
            let entry = entry.as_ref();
            users.push(User {
                name: owned(entry.pw_name),
                uid: entry.pw_uid,
                gid: entry.pw_gid,
                gecos: owned(entry.pw_gecos),
                home: owned(entry.pw_dir),
                shell: owned(entry.pw_shell),
                passwd: owned(entry.pw_passwd),
            });
        }
        libc::endpwent();
    }
    users
}

pub(super) fn groups() -> Vec<Group> {
    let _guard = ENUMERATING.lock();
    let mut groups = Vec::new();
    // SAFETY: as for users; the member list ends with a null pointer.
    unsafe {
        libc::setgrent();
        while let Some(entry) = ptr::NonNull::new(libc::getgrent()) {
            let entry = entry.as_ref();
            let mut members = Vec::new();
            let mut member = entry.gr_mem;
            while !member.is_null() && !(*member).is_null() {
                members.push(owned(*member));
                member = member.add(1);
            }
            groups.push(Group {
                name: owned(entry.gr_name),
                gid: entry.gr_gid,
                members,
                passwd: owned(entry.gr_passwd),
            });
        }
        libc::endgrent();
    }
    groups
}

/// Returns the ids of every group the user is in, the given one among them.
pub(super) fn groups_of(name: &str, gid: u32) -> Result<Vec<u32>> {
    let name = CString::new(name).map_err(|_| Error::Other("a user name with a NUL".into()))?;
    let ids = nix::unistd::getgrouplist(&name, gid.into())
        .map_err(|error| Error::Other(format!("cannot list groups: {}", error.desc())))?;
    Ok(ids.into_iter().map(nix::unistd::Gid::as_raw).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_everywhere() {
        let root = user_named("root").unwrap().unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(user_with_id(0).unwrap(), Some(root.clone()));
        assert!(users().contains(&root));
        let group = group_with_id(0).unwrap().unwrap();
        assert_eq!(group_named(&group.name).unwrap(), Some(group.clone()));
        assert!(groups().contains(&group));
        assert!(groups_of("root", 0).unwrap().contains(&0));
    }

    #[test]
    fn nobody_by_that_name() {
        assert_eq!(user_named("no-such-user-here").unwrap(), None);
        assert_eq!(user_named("a\0b").unwrap(), None);
        assert_eq!(user_with_id(3_999_999_999).unwrap(), None);
        assert_eq!(group_named("no-such-group-here").unwrap(), None);
    }
}
