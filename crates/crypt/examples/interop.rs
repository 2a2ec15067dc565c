//! Prints keys, signatures and ciphertexts of ours as JSON, for genuine Salt to judge (`tests/record/judge.py`).
//!
//! ```console
//! $ cargo run -p halite-crypt --example interop | <python of genuine Salt> crates/crypt/tests/record/judge.py
//! ```
#![expect(clippy::print_stdout, reason = "a program whose output this is")]

use halite_crypt::{Crypticle, EncAlgo, Hash, Nonce, PrivateKey, Result, SessionKey, SigAlgo, pki};
use serde_json::{Value, json};

fn hex(bytes: &[u8]) -> Value {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<String>().into()
}

fn one(bits: u32, sig: SigAlgo, enc: EncAlgo) -> Result<Value> {
    let key = PrivateKey::generate(bits)?;
    let (session, nonce) = (SessionKey::generate(), Nonce::generate());
    let c = Crypticle::new(&session);
    // The payload: msgpack of the text `hello`.
    let payload = b"\xa5hello";
    Ok(json!({
        "bits": bits,
        "pem": key.to_pem(None).expose_str(),
        "locked": key.to_pem(Some("sesame")).expose_str(),
        "pub": key.public().to_pem(),
        "finger": key.public().fingerprint(Hash::Sha256),
        "sig_algo": sig.name(),
        "enc_algo": enc.name(),
        "signature": hex(&key.sign(sig, b"signed data")?),
        "pub_sig": pki::sign_pubkey(&key, sig, key.public().text())?,
        "session": session.text().expose_str(),
        "wrapped": hex(&session.wrap(key.public(), enc)?),
        "proof": hex(&session.proof(&key)?),
        "tok": hex(&key.token()?),
        "sealed": hex(&c.seal(payload, None)),
        "nonce": nonce.as_str(),
        "sealed_with_nonce": hex(&c.seal(payload, Some(&nonce))),
    }))
}

fn main() -> Result<()> {
    let cases = [
        one(2048, SigAlgo::Pkcs1v15Sha1, EncAlgo::OaepSha1)?,
        one(2048, SigAlgo::Pkcs1v15Sha224, EncAlgo::OaepSha224)?,
        one(4096, SigAlgo::Pkcs1v15Sha224, EncAlgo::OaepSha1)?,
    ];
    println!("{}", Value::from(cases.to_vec()));
    Ok(())
}
