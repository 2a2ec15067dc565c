//! The client without a master: the cache, downloads, hashes.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
};

use halite_fileserver::{Local, local::read_text, source_hash};
use halite_host::{Fake, Os};
use halite_spec::{Fetch, Files, Host};
use halite_value::{Dict, dict, list};

fn opts() -> Dict {
    let roots = dict! { "base" => list!["/srv/salt"], "dev" => list!["/srv/dev"] };
    let opts = dict! { "file_roots" => roots, "cachedir" => "/cache", "http_connect_timeout" => 2 };
    opts.as_dict().expect("dict").clone()
}

fn machine() -> (Arc<Fake>, Local) {
    let fake = Arc::new(Fake::new());
    fake.file("/srv/salt/a/b.txt", "one").file("/srv/salt/we?ird", "w").file("/srv/dev/d", "dev");
    let local = Local::new(fake.clone(), &opts());
    (fake, local)
}

fn cached(local: &Local, source: &str) -> Option<PathBuf> {
    local.cache(source, "base").expect("no failure")
}

#[test]
fn salt_files_are_copied_into_the_cache() {
    let (fake, local) = machine();
    assert_eq!(cached(&local, "salt://a/b.txt"), Some("/cache/files/base/a/b.txt".into()));
    assert_eq!(fake.text("/cache/files/base/a/b.txt"), "one");
    let changes = fake.changes();
    cached(&local, "salt://a/b.txt");
    assert_eq!(fake.changes(), changes, "a good copy is left alone");
    fake.file("/srv/salt/a/b.txt", "two");
    cached(&local, "salt:///a/b.txt");
    assert_eq!(fake.text("/cache/files/base/a/b.txt"), "two");
    assert_eq!(cached(&local, "salt://d?saltenv=dev"), Some("/cache/files/dev/d".into()));
    assert_eq!(cached(&local, "salt://|we?ird"), Some("/cache/files/base/we?ird".into()));
    assert_eq!(cached(&local, "salt://we?ird"), None);
    assert_eq!(cached(&local, "salt://nope"), None);
    assert_eq!(cached(&local, "salt://../../etc/shadow"), None);
    let host: &dyn Host = &*fake;
    let mode = host.stat(Path::new("/cache/files/base/a"), true).expect("there").mode;
    assert_eq!(mode, 0o700);
}

#[test]
fn a_leftover_in_the_way_is_removed() {
    let (fake, local) = machine();
    fake.file("/cache/files/base/a", "was a file").dir("/cache/files/base/we?ird");
    assert!(cached(&local, "salt://a/b.txt").is_some());
    assert!(cached(&local, "salt://|we?ird").is_some());
    assert_eq!(fake.text("/cache/files/base/we?ird"), "w");
}

#[test]
fn own_paths_are_returned_as_they_are() {
    let (_, local) = machine();
    assert_eq!(cached(&local, "/etc/x"), Some("/etc/x".into()));
    assert_eq!(cached(&local, "file:///etc/x"), Some("/etc/x".into()));
    let error = local.cache("rel/path", "base").expect_err("relative");
    assert_eq!(error.to_string(), "Path 'rel/path' is not absolute");
    assert!(local.cache("s3://bucket/x", "base").is_err());
}

/// Serves HTTP on a port of its own; returns the port, and the requests it gets.
fn http_server() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, &log);
        }
    });
    (port, seen)
}

fn answer(mut stream: TcpStream, log: &Mutex<Vec<String>>) {
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone().expect("cloned"));
    while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    log.lock().expect("unpoisoned").push(head.clone());
    let (status, extra, body) = match path.as_str() {
        "/file" | "/dir/file?x=1&y=2" => ("200 OK", "ETag: \"v1\"\r\n", "content"),
        "/tagged" if head.contains("if-none-match: \"v1\"") => ("304 Not Modified", "", ""),
        "/tagged" => ("200 OK", "ETag: \"v1\"\r\n", "tagged"),
        "/moved" => ("302 Found", "Location: /file\r\n", "not this"),
        "/short" => ("200 OK", "", "short"),
        "/private" if head.contains("authorization: Basic am9lOnNlY3JldA==") => {
            ("200 OK", "", "in")
        }
        "/private" => ("401 Unauthorized", "", "out"),
        "/sums" => (
            "200 OK",
            "",
            "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73  file\n",
        ),
        _ => ("404 Not Found", "", "nothing"),
    };
    let length = if path == "/short" { 5000 } else { body.len() };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{extra}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}

#[test]
fn downloads_go_to_extrn_files() {
    let (fake, local) = machine();
    let (port, seen) = http_server();
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let place = |name: &str| format!("/cache/extrn_files/base/127.0.0.1{port}/{name}");
    assert_eq!(cached(&local, &url("/file")), Some(place("file").into()));
    assert_eq!(fake.text(place("file")), "content");
    assert_eq!(cached(&local, &url("/dir/file?x=1&y=2")), Some(place("dir/file-x=1&y=2").into()));
    cached(&local, &url("/moved"));
    assert_eq!(fake.text(place("moved")), "content");
    let secret = format!("http://joe:secret@127.0.0.1:{port}/private");
    assert_eq!(cached(&local, &secret), Some(place("private").into()));
    let error = local.cache(&url("/none"), "base").expect_err("missing");
    assert_eq!(error.to_string(), "Error: HTTP 404: Not Found reading /none");
    let error = local.cache(&url("/private"), "base").expect_err("refused");
    assert_eq!(error.to_string(), "Error: HTTP 401: Unauthorized reading /private");
    // A body that ends early must not replace what we have.
    fake.file(place("short"), "old");
    assert!(local.cache(&url("/short"), "base").is_err());
    assert_eq!(fake.text(place("short")), "old");
    // A known hash saves the question.
    let asked = seen.lock().expect("unpoisoned").len();
    let sum = "sha256=ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73";
    let how = Fetch { source_hash: Some(sum.into()), ..Fetch::default() };
    assert!(local.cache_with(&url("/file"), "base", &how).expect("there").is_some());
    assert_eq!(seen.lock().expect("unpoisoned").len(), asked);
    for hostile in ["/../../etc/x", "/a/../../../x"] {
        assert!(local.cache(&url(hostile), "base").is_err(), "{hostile}");
    }
}

#[test]
fn etags_are_remembered() {
    let (fake, local) = machine();
    let (port, seen) = http_server();
    let url = format!("http://127.0.0.1:{port}/tagged");
    let how = Fetch { use_etag: true, ..Fetch::default() };
    for _ in 0..2 {
        let path = local.cache_with(&url, "base", &how).expect("there").expect("some");
        assert_eq!(fake.text(&path), "tagged");
        assert_eq!(fake.text(format!("{}.etag", path.display())), "\"v1\"");
    }
    assert!(seen.lock().expect("unpoisoned")[1].contains("if-none-match"));
}

#[test]
fn nobody_answers() {
    let (_, local) = machine();
    let error = local.cache("http://127.0.0.1:1/x", "base").expect_err("no server");
    assert_eq!(error.to_string(), "Error: [Errno 111] Connection refused reading /x");
    let error = local.cache("ftp://127.0.0.1:1/x", "base").expect_err("no server");
    assert_eq!(
        error.to_string(),
        "Could not retrieve ftp://127.0.0.1:1/x from FTP server. Exception: [Errno 111] Connection refused"
    );
}

#[test]
fn hashes_come_from_lists() {
    let (fake, local) = machine();
    let (port, _) = http_server();
    fake.file("/sums", format!("{}  b.txt\n", "a".repeat(32)));
    let read = |path: &Path| read_text(&*fake, path);
    let resolve = |hash: &str, wanted: &source_hash::Wanted<'_>| {
        source_hash::resolve(hash, wanted, &local, "base", &Fetch::default(), &read)
    };
    let wanted = source_hash::Wanted { source: "http://h/file", ..Default::default() };
    let sum = resolve(&format!("http://127.0.0.1:{port}/sums"), &wanted).expect("found");
    assert!(sum.digits.starts_with("ed7002b4"));
    assert_eq!(resolve("/sums", &wanted).expect("found").kind.name(), "md5");
    let error = resolve("salt://no/such", &wanted).expect_err("missing");
    assert_eq!(error.to_string(), "Source hash file salt://no/such not found");
    assert!(resolve("gopher://x", &wanted).is_err());
}

/// A server that knows one file, speaks EPSV, and checks who asks.
fn ftp_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        let mut stream = listener.accept().expect("a client").0;
        let mut reader = BufReader::new(stream.try_clone().expect("cloned"));
        let data = TcpListener::bind("127.0.0.1:0").expect("a port");
        let data_port = data.local_addr().expect("an address").port();
        let mut say = |text: String| stream.write_all(text.as_bytes()).expect("sent");
        say("220-hello\r\nthere\r\n220 ready\r\n".into());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).expect("read") == 0 {
                return;
            }
            match line.trim_end() {
                "USER joe" => say("331 password\r\n".into()),
                "PASS secret" => say("230 in\r\n".into()),
                "TYPE I" => say("200 binary\r\n".into()),
                "EPSV" => say(format!("229 Extended passive (|||{data_port}|)\r\n")),
                "RETR dir/file" => {
                    say("150 coming\r\n".into());
                    data.accept().expect("a client").0.write_all(b"by ftp").expect("sent");
                    say("226 done\r\n".into());
                }
                other => say(format!("550 what is {other}\r\n")),
            }
        }
    });
    port
}

#[test]
fn ftp_fetches() {
    let (fake, local) = machine();
    let port = ftp_server();
    let path =
        cached(&local, &format!("ftp://joe:secret@127.0.0.1:{port}/dir/file")).expect("some");
    assert_eq!(fake.text(path), "by ftp");
}

#[test]
fn a_big_file_is_served_in_pieces() {
    let folder = tempfile::tempdir().expect("a folder");
    let content: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
    std::fs::write(folder.path().join("big"), &content).expect("written");
    let roots = dict! { "base" => list![folder.path().to_string_lossy().into_owned()] };
    let opts = dict! { "file_roots" => roots, "file_buffer_size" => 1_048_576 };
    let local = Local::new(Arc::new(Os::new()), opts.as_dict().expect("dict"));
    let mut got = Vec::new();
    loop {
        let piece = local.server().serve("big", "base", got.len() as u64, Some(5)).expect("served");
        let data = piece.get("data").expect("data");
        if data.as_bytes() == Some(b"") {
            assert_eq!(piece.get_str("dest").as_deref(), Some("big"));
            break;
        }
        assert_eq!(piece.get("gzip"), Some(5.into()));
        flate2::read::GzDecoder::new(data.as_bytes().expect("bytes"))
            .read_to_end(&mut got)
            .expect("gzip");
    }
    assert!(got == content);
}
