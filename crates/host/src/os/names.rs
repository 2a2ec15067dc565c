//! The system's resolver: files, DNS and whatever else the name service is set up with.
//!
//! Asking for a name may block for as long as a broken name server lets it, as it does everywhere.
//! Asking for the names of an address is bounded: that is curiosity, and nobody shall wait long for
//! it. The C library cannot be interrupted, so the question is asked by a thread that is left
//! behind when the time is over.
#![expect(unsafe_code, reason = "the C library's resolver has no safe wrapper")]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    mem,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ptr,
    sync::mpsc,
    time::Duration,
};

use halite_spec::host::Resolved;

/// One try of the usual settings.
const PATIENCE: Duration = Duration::from_secs(5);

unsafe extern "C" {
    fn gethostbyaddr_r(
        address: *const c_void,
        length: libc::socklen_t,
        family: c_int,
        entry: *mut libc::hostent,
        buffer: *mut c_char,
        size: usize,
        answer: *mut *mut libc::hostent,
        error: *mut c_int,
    ) -> c_int;
}

pub(super) fn resolve(name: &str) -> Resolved {
    let mut resolved = Resolved::default();
    let Ok(name) = CString::new(name) else { return resolved };
    // SAFETY: all zeroes is a valid value of this plain C structure.
    let mut wanted: libc::addrinfo = unsafe { mem::zeroed() };
    wanted.ai_flags = libc::AI_CANONNAME;
    wanted.ai_socktype = libc::SOCK_STREAM;
    let mut first = ptr::null_mut();
    // SAFETY: the name ends with a NUL, and the results are only used if the call succeeded.
    if unsafe { libc::getaddrinfo(name.as_ptr(), ptr::null(), &raw const wanted, &raw mut first) }
        != 0
    {
        return resolved;
    }
    let mut next = first;
    // SAFETY: the list is ours until it is freed, each entry points to the next one or to null, and
    // an address is as long as its family says.
    unsafe {
        while let Some(entry) = next.as_ref() {
            if !entry.ai_canonname.is_null() && resolved.canonical.is_none() {
                resolved.canonical = Some(text(entry.ai_canonname));
            }
            if let Some(address) = address_of(entry)
                && !resolved.addresses.contains(&address)
            {
                resolved.addresses.push(address);
            }
            next = entry.ai_next;
        }
        libc::freeaddrinfo(first);
    }
    resolved
}

/// # Safety
/// The entry comes from `getaddrinfo`.
unsafe fn address_of(entry: &libc::addrinfo) -> Option<IpAddr> {
    match entry.ai_family {
        libc::AF_INET => {
            // SAFETY: the family says what the pointer leads to.
            let address = unsafe { entry.ai_addr.cast::<libc::sockaddr_in>().as_ref() }?;
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { entry.ai_addr.cast::<libc::sockaddr_in6>().as_ref() }?;
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// # Safety
/// The pointer names a text that ends with a NUL.
unsafe fn text(pointer: *const c_char) -> String {
    // SAFETY: the caller vouches for it.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

pub(super) fn names_of(address: IpAddr) -> Vec<String> {
    let (answer, wait) = mpsc::channel();
    let asked = std::thread::Builder::new()
        .name("resolver".into())
        .spawn(move || answer.send(look_up(address)));
    match asked {
        Ok(_) => wait.recv_timeout(PATIENCE).unwrap_or_default(),
        Err(_) => look_up(address),
    }
}

fn look_up(address: IpAddr) -> Vec<String> {
    let (family, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    // What it needs is not known before; more than this is no answer but an attack.
    for size in [4 << 10, 64 << 10, 1 << 20] {
        let mut buffer = vec![0_u8; size];
        // SAFETY: all zeroes is a valid value of this plain C structure.
        let mut entry: libc::hostent = unsafe { mem::zeroed() };
        let (mut answer, mut error) = (ptr::null_mut(), 0);
        // SAFETY: all pointers lead to values that outlive the call, with their true sizes.
        let code = unsafe {
            gethostbyaddr_r(
                bytes.as_ptr().cast(),
                bytes.len() as libc::socklen_t,
                family,
                &raw mut entry,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &raw mut answer,
                &raw mut error,
            )
        };
        if code == libc::ERANGE {
            continue;
        }
        // SAFETY: a pointer that is not null leads to our entry, whose parts are in our buffer,
        // and the list of aliases ends with a null pointer.
        return unsafe { answer.as_ref().map(|entry| names_in(entry)) }.unwrap_or_default();
    }
    Vec::new()
}

/// # Safety
/// The entry was filled by the C library, and its buffer is alive.
unsafe fn names_in(entry: &libc::hostent) -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: see above.
    unsafe {
        if !entry.h_name.is_null() {
            names.push(text(entry.h_name));
        }
        let mut alias = entry.h_aliases;
        while !alias.is_null() && !(*alias).is_null() {
            names.push(text(*alias));
            alias = alias.add(1);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_resolve_without_a_resolver() {
        let resolved = resolve("192.0.2.7");
        assert_eq!(resolved.addresses, [IpAddr::from([192, 0, 2, 7])]);
        let resolved = resolve("2001:db8::7");
        assert_eq!(resolved.addresses, ["2001:db8::7".parse::<IpAddr>().unwrap()]);
        assert!(resolve("a\0b").addresses.is_empty());
        assert!(resolve("").addresses.is_empty());
    }

    #[test]
    fn the_loopback_has_a_name() {
        // Every machine has it in its hosts file, except a few very bare containers.
        let names = names_of(IpAddr::from([127, 0, 0, 1]));
        assert!(names.is_empty() || names.iter().all(|name| !name.is_empty()));
    }
}
