//! The file server against answers recorded from genuine Salt 3008 (`record.py` wrote `cases.json`).

use std::{fs, os::unix::fs::symlink, path::Path, sync::Arc};

use halite_fileserver::{FileServer, Options, Roots};
use halite_host::Os;
use halite_value::{Dict, Value, dict, json};

fn put(tree: &Dict, root: &Path) {
    for (path, what) in tree {
        let full = root.join(path.as_str().expect("a path"));
        fs::create_dir_all(full.parent().expect("a parent")).expect("made");
        match what {
            Value::Null => fs::create_dir_all(full).expect("made"),
            Value::Str(text) => fs::write(full, text.as_str()).expect("written"),
            link => {
                let target = link.items_of_sequence().expect("a link")[1].to_str();
                symlink(target.replace('@', &root.to_string_lossy()), full).expect("linked");
            }
        }
    }
}

fn list(value: Option<Value>) -> Value {
    value.expect("recorded")
}

#[test]
fn genuine_answers() {
    let scratch = tempfile::tempdir().expect("a folder");
    let root = fs::canonicalize(scratch.path()).expect("there");
    let here = root.to_string_lossy().into_owned();
    let text = include_str!("cases.json");
    let recorded = json::from_str(text).expect("JSON");
    put(recorded.get("tree").expect("tree").as_dict().expect("dict"), &root);
    // The tree's own links are placed above; everything else names the scratch folder.
    let recorded = json::from_str(&text.replace("@/", &format!("{here}/"))).expect("JSON");
    let mut wrong = Vec::new();
    for case in recorded.get("cases").and_then(|all| all.items_of_sequence()).expect("cases") {
        let options = case.get("options").expect("options");
        let named = options.repr();
        let options = Options::from_opts(options.as_dict().expect("dict"));
        let buffer = options.buffer_size;
        let server =
            FileServer::new(vec![Arc::new(Roots::new(Arc::new(Os::new()), options))], buffer);
        let ask = |command: &str, load: Value| {
            server.answer(command, &load).expect("known").expect("answered")
        };
        let mut check = |what: String, own: Value, expected: Value| {
            if own != expected {
                wrong.push(format!("{named} {what}: {own:?}, genuine {expected:?}"));
            }
        };
        check("envs".into(), ask("_file_envs", Value::dict()), list(case.get("envs")));
        let lists = case.get("lists").expect("lists");
        for (env, lists) in lists.as_dict().expect("dict") {
            for (command, name) in [
                ("_file_list", "file_list"),
                ("_dir_list", "dir_list"),
                ("_file_list_emptydirs", "file_list_emptydirs"),
                ("_symlink_list", "symlink_list"),
            ] {
                let own = ask(command, dict! { "saltenv" => &env.to_str() });
                check(format!("{env} {name}"), own, list(lists.get(name)));
            }
            let load = dict! { "saltenv" => &env.to_str(), "prefix" => "/web/fi" };
            check(format!("{env} prefix"), ask("_file_list", load), list(lists.get("prefixed")));
        }
        for find in case.get("finds").and_then(|all| all.items_of_sequence()).expect("finds") {
            let find = find.items_of_sequence().expect("five");
            let load = dict! { "path" => &find[0], "saltenv" => &find[1] };
            let own = ask("_file_find", load.clone());
            check(format!("find {find:?}"), own.get("path").expect("path"), find[2].clone());
            check(format!("rel {find:?}"), own.get("rel").expect("rel"), find[3].clone());
            check(format!("hash {find:?}"), ask("_file_hash", load.clone()), find[4].clone());
            let both = ask("_file_hash_and_stat", load).items_of_sequence().expect("two");
            assert_eq!(both[0], find[4]);
            assert_eq!(both[1].is_null(), find[2] == "");
        }
        for serve in case.get("serves").and_then(|all| all.items_of_sequence()).expect("serves") {
            let serve = serve.items_of_sequence().expect("four");
            let load = dict! { "path" => &serve[0], "saltenv" => "base", "loc" => &serve[1] };
            let own = ask("_serve_file", load);
            let data = own.get("data").expect("data");
            let data = String::from_utf8_lossy(data.as_bytes().expect("bytes")).into_owned();
            check(format!("serve {serve:?}"), data.into(), serve[2].clone());
            check(format!("dest {serve:?}"), own.get("dest").expect("dest"), serve[3].clone());
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
