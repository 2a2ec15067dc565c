//! Damaged and hostile input is refused, never a panic, never accepted as something else.

mod common;

use common::{Dice, genuine, text};
use halite_crypt::{
    Crypticle, EncAlgo, Error, Fault, Hash, PrivateKey, PublicKey, SessionKey, SigAlgo,
    fingerprint, pki, same_key,
};

/// Changes, removes, inserts or repeats a few bytes.
fn mutate(dice: &mut Dice, original: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=dice.below(3) {
        let at = dice.below(bytes.len());
        match dice.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << dice.below(8),
            1 if !bytes.is_empty() => bytes[at] = dice.below(256) as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, b"A=-\n\0\xff"[dice.below(6)]),
            4 => {
                let end = (at + dice.below(80)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let end = (at + dice.below(80)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

#[test]
fn pem_files() {
    let recorded = genuine();
    let case = &recorded["keys"][0];
    let pass = text(&recorded["passphrase"]);
    let public = PublicKey::from_pem(text(&case["pub"]).as_bytes()).expect("public");
    let mut dice = Dice(0x5a17);
    let mut survived = 0;
    for name in ["pem", "pkcs8", "pkcs8_locked", "other_locked", "pub"] {
        let original = text(&case[name]).as_bytes();
        // Unlocking is slow on purpose (key stretching), hence fewer rounds.
        for _ in 0..if name == "pkcs8_locked" { 150 } else { 1500 } {
            let bad = mutate(&mut dice, original);
            if let Ok(key) = PrivateKey::from_pem(&bad, Some(pass)) {
                // Only white space or framing was hit; then it must be a working key.
                let sig = key.sign(SigAlgo::Pkcs1v15Sha1, b"x").expect("sign");
                key.public()
                    .verify(SigAlgo::Pkcs1v15Sha1, b"x", &sig)
                    .expect("a key that fits itself");
                survived += 1;
            }
            if let Ok(key) = PublicKey::from_pem(&bad) {
                let _ = key.encrypt(EncAlgo::OaepSha224, b"x");
                let _ = key.recover_x931(&[1; 256]);
                assert_eq!(same_key(&String::from_utf8_lossy(&bad), public.text()), key == public);
            }
            let _ = fingerprint(&bad, Hash::Md5);
            let _ = SessionKey::parse(&bad);
        }
    }
    assert!(survived > 0, "the mutations are not all fatal, so the checks above were reached");
}

#[test]
fn wrong_kinds_of_key() {
    let recorded = genuine();
    let case = &recorded["keys"][0];
    let public = text(&case["pub"]);
    let private = text(&case["pem"]);
    assert!(matches!(PublicKey::from_pem(private.as_bytes()), Err(Error::PublicKey(_))));
    assert!(matches!(PrivateKey::from_pem(public.as_bytes(), None), Err(Error::PrivateKey(_))));
    let ed25519 = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
    assert!(matches!(
        PublicKey::from_pem(ed25519.as_bytes()),
        Err(Error::PublicKey(Fault::NotRsa))
    ));
    // 512 bits: readable, but broken for decades
    let tiny = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf\n9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==\n-----END PUBLIC KEY-----\n";
    assert!(matches!(PublicKey::from_pem(tiny.as_bytes()), Err(Error::PublicKey(Fault::NotRsa))));
    let padded = format!("{}{public}", " ".repeat(1 << 20));
    assert!(matches!(
        PublicKey::from_pem(padded.as_bytes()),
        Err(Error::PublicKey(Fault::Malformed))
    ));
    for bits in [0, 512, 1023, 16385, u32::MAX] {
        assert!(matches!(PrivateKey::generate(bits), Err(Error::KeySize(_))), "{bits}");
    }
}

#[test]
fn messages() {
    let key = PrivateKey::generate(1024).expect("generate");
    let session = SessionKey::generate();
    let c = Crypticle::new(&session);
    let (wrapped, proof) = (
        session.wrap(key.public(), EncAlgo::OaepSha1).expect("76 bytes fit"),
        session.proof(&key).expect("64 bytes fit"),
    );
    let sealed = c.seal(&[9; 100], None);
    let signature = pki::sign_pubkey(&key, SigAlgo::Pkcs1v15Sha1, "text").expect("sign");
    let mut dice = Dice(77);
    for _ in 0..2000 {
        let bad = mutate(&mut dice, &wrapped);
        assert!(bad == wrapped || SessionKey::unwrap_from(&bad, &key, EncAlgo::OaepSha1).is_err());
        let bad = mutate(&mut dice, &proof);
        assert!(bad == proof || session.verify_proof(key.public(), &bad).is_err());
        let bad = mutate(&mut dice, &sealed);
        assert!(bad == sealed || matches!(c.open(&bad, None), Err(Error::Authentication)));
        let bad = String::from_utf8_lossy(&mutate(&mut dice, signature.as_bytes())).into_owned();
        let _ = pki::verify_pubkey(key.public(), SigAlgo::Pkcs1v15Sha1, "text", &bad);
    }
    for n in [0, 1, 127, 129, 1000] {
        assert!(key.decrypt(EncAlgo::OaepSha1, &vec![1; n]).is_err());
        assert!(key.public().recover_x931(&vec![0xff; n]).is_err());
        assert!(key.public().verify(SigAlgo::Pkcs1v15Sha1, b"", &vec![0; n]).is_err());
    }
    // Not below the modulus, zero, one: degenerate numbers that raw RSA maps to themselves.
    let one = [vec![0; 127], vec![1]].concat();
    for number in [vec![0xff; 128], vec![0; 128], one] {
        assert!(key.public().recover_x931(&number).is_err());
    }
}
