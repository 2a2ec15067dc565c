//! Measures the operations of a sign-in and of a sealed message; prints one JSON object, operations per second on one core.
//!
//! ```console
//! $ cargo run --release -p halite-crypt --example bench [seconds per operation]
//! ```
#![expect(clippy::print_stdout, reason = "a program whose output this is")]

use halite_crypt::{Crypticle, EncAlgo, Nonce, PrivateKey, PublicKey, Result, SessionKey, SigAlgo};
use std::time::{Duration, Instant};

/// Calls `work` for about `span` and returns calls per second.
fn rate(span: Duration, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let (start, mut calls) = (Instant::now(), 0u32);
    while start.elapsed() < span {
        work()?;
        calls += 1;
    }
    Ok((f64::from(calls) / start.elapsed().as_secs_f64()).round())
}

/// Uses up a result, so that the compiler cannot leave the work out.
fn discard<T>(result: T) -> Result<()> {
    std::hint::black_box(result);
    Ok(())
}

fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let span = Duration::from_secs_f64(seconds);
    let key = PrivateKey::generate(2048)?;
    let public = key.public();
    let (pem, text) = (key.to_pem(None), public.text().to_owned());
    let session = SessionKey::generate();
    let (c, nonce, kilobyte) = (Crypticle::new(&session), Nonce::generate(), vec![7; 1024]);
    let mut results = serde_json::Map::new();
    let mut add = |name: &str, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
        results.insert(name.into(), rate(span, work)?.into());
        Ok(())
    };
    add("generate_2048", &mut || PrivateKey::generate(2048).map(drop))?;
    add("load_private_pem", &mut || PrivateKey::from_pem(pem.expose(), None).map(drop))?;
    add("load_public_pem", &mut || PublicKey::from_pem(text.as_bytes()).map(drop))?;
    for algo in [SigAlgo::Pkcs1v15Sha1, SigAlgo::Pkcs1v15Sha224] {
        let sig = key.sign(algo, &kilobyte)?;
        add(&format!("sign {algo} 1KB"), &mut || key.sign(algo, &kilobyte).map(drop))?;
        add(&format!("verify {algo} 1KB"), &mut || public.verify(algo, &kilobyte, &sig))?;
    }
    for algo in [EncAlgo::OaepSha1, EncAlgo::OaepSha224] {
        let wrapped = session.wrap(public, algo)?;
        add(&format!("encrypt {algo}"), &mut || session.wrap(public, algo).map(drop))?;
        add(&format!("decrypt {algo}"), &mut || key.decrypt(algo, &wrapped).map(drop))?;
    }
    let tok = key.token()?;
    add("sign X9.31", &mut || key.sign_x931(b"salt").map(drop))?;
    add("verify X9.31", &mut || public.verify_token(&tok))?;
    let sealed = c.seal(&kilobyte, Some(&nonce));
    add("crypticle_new", &mut || discard(Crypticle::new(&session)))?;
    add("seal 1KB", &mut || discard(c.seal(&kilobyte, Some(&nonce))))?;
    add("open 1KB", &mut || c.open(&sealed, Some(&nonce)).map(drop))?;
    add("seal+open 1KB", &mut || c.open(&c.seal(&kilobyte, Some(&nonce)), Some(&nonce)).map(drop))?;
    println!("{}", serde_json::to_string_pretty(&results).unwrap_or_default());
    Ok(())
}
