//! Keys, signatures and ciphertexts made by genuine Salt (`record/genuine.py`) are read, verified and opened by ours.
//!
//! PKCS#1 v1.5 and X9.31 are deterministic, so our own signatures must come out byte for byte the same.

mod common;

use common::{TempDir, genuine, list, text, unhex};
use halite_crypt::{
    Crypticle, EncAlgo, Error, Fault, Hash, KeyOptions, Nonce, PkiDir, PrivateKey, PublicKey,
    SessionKey, SigAlgo, fingerprint, fingerprint_of_text, normalise, pki, same_key,
};
use serde_json::Value;

fn keys(case: &Value) -> (PrivateKey, PublicKey) {
    let private = PrivateKey::from_pem(text(&case["pem"]).as_bytes(), None).expect("private");
    let public = PublicKey::from_pem(text(&case["pub"]).as_bytes()).expect("public");
    (private, public)
}

fn for_each_key(check: impl Fn(&Value, PrivateKey, PublicKey)) {
    let recorded = genuine();
    for case in list(&recorded["keys"]) {
        let (private, public) = keys(case);
        check(case, private, public);
    }
}

#[test]
fn key_files() {
    let recorded = genuine();
    let pass = text(&recorded["passphrase"]);
    for_each_key(|case, private, public| {
        assert_eq!(u64::from(public.bits()), case["bits"].as_u64().expect("bits"));
        assert!(private.public() == &public);
        assert_eq!(public.text(), text(&case["clean"]));
        assert_eq!(public.to_pem(), text(&case["pub"]));
        assert_eq!(private.to_pem(None).expose_str(), case["pem"].as_str());
        assert!(same_key(text(&case["pub"]), &text(&case["clean"]).replace('\n', "\r\n")));
        assert!(!same_key(text(&case["pub"]), text(&case["other_pub"])));
        let load = |name: &str, pass| PrivateKey::from_pem(text(&case[name]).as_bytes(), pass);
        for (name, expected) in
            [("pkcs8", "clean"), ("pkcs8_locked", "clean"), ("other_locked", "other_pub")]
        {
            let key = load(name, Some(pass)).expect(name);
            assert_eq!(key.public().text(), text(&case[expected]), "{name}");
        }
        let long = "long".repeat(1000);
        for name in ["pkcs8_locked", "other_locked"] {
            for wrong in [None, Some(""), Some("wrong"), Some(&*long)] {
                let fault = load(name, wrong).expect_err("locked");
                assert!(matches!(fault, Error::PrivateKey(Fault::Passphrase)), "{name} {fault:?}");
            }
        }
        let relocked = private.to_pem(Some(pass));
        assert!(relocked.expose_str().expect("PEM").contains("DEK-Info: AES-256-CBC"));
        let again =
            PrivateKey::from_pem(relocked.expose(), Some(pass)).expect("our own encryption");
        assert!(again.public() == &public);
    });
}

#[test]
fn fingerprints() {
    for_each_key(|case, _, public| {
        for name in ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"] {
            let hash: Hash = name.parse().expect("hash");
            let body = text(&case["fingerprints"][name]);
            assert_eq!(fingerprint(text(&case["pub"]).as_bytes(), hash), body);
            assert_eq!(public.fingerprint(hash), body, "without the final newline, too");
            let whole = fingerprint_of_text(text(&case["pub"]).as_bytes(), hash);
            assert_eq!(whole, text(&case["text_fingerprints"][name]));
        }
    });
    let recorded = genuine();
    let master = &recorded["master"];
    let file = text(&master["files"]["mst.pub"]["text"]);
    let shown = fingerprint_of_text(file.as_bytes(), Hash::Sha256);
    assert_eq!(shown, text(&master["salt_key_finger"]));
}

#[test]
fn signatures() {
    for_each_key(|case, private, public| {
        for sample in list(&case["signatures"]) {
            let algo: SigAlgo = text(&sample["algo"]).parse().expect("algorithm");
            let (data, sig) = (unhex(&sample["data"]), unhex(&sample["sig"]));
            public.verify(algo, &data, &sig).expect("genuine signature");
            assert_eq!(private.sign(algo, &data).expect("sign"), sig);
            let other = match algo {
                SigAlgo::Pkcs1v15Sha1 => SigAlgo::Pkcs1v15Sha224,
                SigAlgo::Pkcs1v15Sha224 => SigAlgo::Pkcs1v15Sha1,
            };
            assert!(public.verify(other, &data, &sig).is_err());
            assert!(public.verify_sha256(&data, &sig).is_err());
        }
    });
}

#[test]
fn ciphertexts() {
    for_each_key(|case, private, public| {
        for sample in list(&case["ciphertexts"]) {
            let algo: EncAlgo = text(&sample["algo"]).parse().expect("algorithm");
            let (clear, sealed) = (unhex(&sample["clear"]), unhex(&sample["sealed"]));
            let opened = private.decrypt(algo, &sealed).expect("genuine ciphertext");
            assert_eq!(opened.expose(), clear);
            let ours = public.encrypt(algo, &clear).expect("encrypt");
            assert!(private.decrypt(algo, &ours).expect("our own").equals(&clear));
        }
        let most = |hash: usize| public.bits() as usize / 8 - 2 * hash - 2;
        for (algo, most) in [(EncAlgo::OaepSha1, most(20)), (EncAlgo::OaepSha224, most(28))] {
            assert!(public.encrypt(algo, &vec![1; most]).is_ok());
            assert!(matches!(public.encrypt(algo, &vec![1; most + 1]), Err(Error::TooLong)));
        }
    });
}

#[test]
fn x931() {
    for_each_key(|case, private, public| {
        for sample in list(&case["x931"]) {
            let (message, sig) = (unhex(&sample["message"]), unhex(&sample["sig"]));
            assert_eq!(public.recover_x931(&sig).expect("genuine signature"), message);
            assert_eq!(private.sign_x931(&message).expect("sign"), sig);
            if message == b"salt" {
                public.verify_token(&sig).expect("a genuine tok");
                assert_eq!(private.token().expect("token"), sig);
            } else {
                assert!(public.verify_token(&sig).is_err());
            }
        }
    });
}

#[test]
fn crypticle() {
    let recorded = genuine();
    let case = &recorded["crypticle"];
    let key = SessionKey::parse(text(&case["key"]).as_bytes()).expect("key string");
    let (c, nonce) = (Crypticle::new(&key), Nonce::parse(text(&case["nonce"])).expect("nonce"));
    for sample in list(&case["plain"]) {
        let opened = c.decrypt(&unhex(&sample["sealed"])).expect("genuine message");
        assert_eq!(opened, unhex(&sample["clear"]));
    }
    let (plain, with_nonce) = (unhex(&case["sealed"]), unhex(&case["sealed_with_nonce"]));
    assert_eq!(c.open(&plain, None).expect("genuine"), unhex(&case["payload"]));
    assert_eq!(c.open(&with_nonce, Some(&nonce)).expect("genuine"), unhex(&case["payload"]));
    let other = Nonce::generate();
    assert!(matches!(c.open(&with_nonce, Some(&other)), Err(Error::NonceMismatch)));
}

/// The files of a genuine 3008 master are used as they are.
#[test]
fn master_directory() {
    let recorded = genuine();
    let master = &recorded["master"];
    let tmp = TempDir::new();
    for (name, file) in master["files"].as_object().expect("files") {
        let path = tmp.path().join(name);
        match file["link"].as_str() {
            Some(to) => std::os::unix::fs::symlink(tmp.path().join(to), path).expect("link"),
            None => std::fs::write(path, text(&file["text"])).expect("file"),
        }
    }
    let (pki, options) = (PkiDir::new(tmp.path()), KeyOptions::default());
    let pub_key = text(&master["pub_key"]);
    for id in ["mst_master", "mst", "renamed_master", "master"] {
        let key = pki.master(id, &options).expect("the recorded key");
        assert_eq!(key.public().text(), pub_key, "{id}");
    }
    let signing = pki.load_or_create("master_sign", &options).expect("signing pair");
    let public = pki.public("master_sign.pub").expect("readable").expect("there");
    for name in ["PKCS1v15-SHA1", "PKCS1v15-SHA224"] {
        let (algo, recorded) = (name.parse().expect("name"), text(&master["pub_sig"][name]));
        assert_eq!(pki::sign_pubkey(&signing, algo, pub_key).expect("sign"), recorded);
        pki::verify_pubkey(&public, algo, pub_key, recorded).expect("genuine pub_sig");
        let changed = pub_key.replace('A', "B");
        assert!(pki::verify_pubkey(&public, algo, &changed, recorded).is_err());
    }
    assert_eq!(std::fs::read_dir(tmp.path()).expect("directory").count(), 6, "nothing was added");
}

#[test]
fn clean_keys() {
    for case in list(&genuine()["clean_key"]) {
        assert_eq!(normalise(text(&case["text"])), text(&case["clean"]), "{case}");
    }
}
