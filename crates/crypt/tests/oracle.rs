//! Properties against an independent implementation (the `rsa` crate): whatever one makes, the other reads.

use halite_crypt::{Crypticle, EncAlgo, Nonce, PrivateKey, PublicKey, SessionKey, SigAlgo};
use proptest::prelude::*;
use rsa::pkcs1::DecodeRsaPrivateKey as _;
use rsa::pkcs8::{DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use rsa::rand_core::{CryptoRng, RngCore};
use rsa::{Oaep, Pkcs1v15Sign, RsaPrivateKey, RsaPublicKey};
use rsa_sha1::{Digest as _, Sha1};
use rsa_sha2::{Sha224, Sha256};
use std::sync::LazyLock;

#[derive(Debug)]
struct Pair {
    ours: PrivateKey,
    theirs: RsaPrivateKey,
    their_public: RsaPublicKey,
}

/// Several sizes, made by us and read by the oracle.
static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| {
    [1024, 1152, 2048]
        .into_iter()
        .map(|bits| {
            let ours = PrivateKey::generate(bits).expect("generate");
            assert_eq!(ours.public().bits(), bits);
            let pem = ours.to_pem(None);
            let theirs =
                RsaPrivateKey::from_pkcs1_pem(pem.expose_str().expect("PEM")).expect("PKCS#1");
            let their_public =
                RsaPublicKey::from_public_key_pem(ours.public().to_pem()).expect("SPKI");
            assert_eq!(theirs.to_public_key(), their_public);
            Pair { ours, theirs, their_public }
        })
        .collect()
});

/// Randomness for the oracle that follows from the case, so that a failure can be repeated.
struct Counter(u64);

impl RngCore for Counter {
    fn next_u32(&mut self) -> u32 {
        self.next_u64() as u32
    }
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 ^ self.0 >> 33
    }
    fn fill_bytes(&mut self, out: &mut [u8]) {
        for byte in out {
            *byte = (self.next_u64() >> 24) as u8;
        }
    }
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), rsa::rand_core::Error> {
        self.fill_bytes(out);
        Ok(())
    }
}

impl CryptoRng for Counter {}

fn pair() -> impl Strategy<Value = &'static Pair> {
    (0..PAIRS.len()).prop_map(|i| &PAIRS[i])
}

fn enc() -> impl Strategy<Value = EncAlgo> {
    prop_oneof![Just(EncAlgo::OaepSha1), Just(EncAlgo::OaepSha224)]
}

fn sig() -> impl Strategy<Value = SigAlgo> {
    prop_oneof![Just(SigAlgo::Pkcs1v15Sha1), Just(SigAlgo::Pkcs1v15Sha224)]
}

fn oaep(algo: EncAlgo) -> Oaep {
    match algo {
        EncAlgo::OaepSha1 => Oaep::new::<Sha1>(),
        EncAlgo::OaepSha224 => Oaep::new::<Sha224>(),
    }
}

fn scheme(algo: SigAlgo, data: &[u8]) -> (Pkcs1v15Sign, Vec<u8>) {
    match algo {
        SigAlgo::Pkcs1v15Sha1 => {
            // The oracle's SHA-1 comes without its object id; this is the DER prefix of RFC 8017, 9.2.
            let prefix = [
                0x30, 0x21, 0x30, 0x09, 0x06, 0x05, 0x2b, 0x0e, 0x03, 0x02, 0x1a, 0x05, 0x00, 0x04,
                0x14,
            ];
            (
                Pkcs1v15Sign { hash_len: Some(20), prefix: Box::from(prefix) },
                Sha1::digest(data).to_vec(),
            )
        }
        SigAlgo::Pkcs1v15Sha224 => {
            let prefix = [
                0x30, 0x2d, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
                0x04, 0x05, 0x00, 0x04, 0x1c,
            ];
            (
                Pkcs1v15Sign { hash_len: Some(28), prefix: Box::from(prefix) },
                Sha224::digest(data).to_vec(),
            )
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn oaep_both_ways(pair in pair(), algo in enc(), clear in prop::collection::vec(any::<u8>(), 0..66), seed: u64) {
        let sealed = pair.ours.public().encrypt(algo, &clear).unwrap();
        prop_assert_eq!(&pair.theirs.decrypt(oaep(algo), &sealed).unwrap(), &clear);
        let sealed = pair.their_public.encrypt(&mut Counter(seed), oaep(algo), &clear).unwrap();
        prop_assert!(pair.ours.decrypt(algo, &sealed).unwrap().equals(&clear));
        let mut bad = sealed;
        let at = seed as usize % bad.len();
        bad[at] ^= 1 << (seed >> 60 & 7);
        prop_assert!(pair.ours.decrypt(algo, &bad).is_err());
    }

    #[test]
    fn pkcs1v15_both_ways(pair in pair(), algo in sig(), data: Vec<u8>, at: usize, bit in 0u8..8) {
        let (padding, digest) = scheme(algo, &data);
        let theirs = pair.theirs.sign(padding, &digest).unwrap();
        prop_assert_eq!(&pair.ours.sign(algo, &data).unwrap(), &theirs);
        prop_assert!(pair.ours.public().verify(algo, &data, &theirs).is_ok());
        let mut bad = theirs.clone();
        let at = at % bad.len();
        bad[at] ^= 1 << bit;
        prop_assert!(pair.ours.public().verify(algo, &data, &bad).is_err());
        let mut longer = data;
        longer.push(bit);
        prop_assert!(pair.ours.public().verify(algo, &longer, &theirs).is_err());
    }

    #[test]
    fn sha256_for_ourselves(pair in pair(), data: Vec<u8>) {
        let ours = pair.ours.sign_sha256(&data).unwrap();
        let prefix = [
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04,
            0x20,
        ];
        let padding = Pkcs1v15Sign { hash_len: Some(32), prefix: Box::from(prefix) };
        prop_assert_eq!(pair.theirs.sign(padding, &Sha256::digest(&data)).unwrap(), ours.clone());
        prop_assert!(pair.ours.public().verify_sha256(&data, &ours).is_ok());
    }

    #[test]
    fn x931_comes_back(pair in pair(), message in prop::collection::vec(any::<u8>(), 1..125), other in pair()) {
        let sig = pair.ours.sign_x931(&message).unwrap();
        prop_assert_eq!(sig.len(), pair.ours.public().bits() as usize / 8);
        prop_assert_eq!(pair.ours.public().recover_x931(&sig).unwrap(), message.clone());
        if other.ours.public() != pair.ours.public() {
            prop_assert!(other.ours.public().verify_x931(&message, &sig).is_err());
        }
    }

    #[test]
    fn crypticle_comes_back(payload: Vec<u8>, with_nonce: bool) {
        let key = SessionKey::generate();
        let c = Crypticle::new(&key);
        let nonce = with_nonce.then(Nonce::generate);
        let sealed = c.seal(&payload, nonce.as_ref());
        prop_assert_eq!(c.open(&sealed, nonce.as_ref()).unwrap(), payload.clone());
        prop_assert!(c.seal(&payload, nonce.as_ref()) != sealed, "the IV is fresh");
        let shared = Crypticle::new(&SessionKey::parse(key.text().expose()).unwrap());
        prop_assert_eq!(shared.open(&sealed, nonce.as_ref()).unwrap(), payload);
    }
}

#[test]
fn their_files_are_ours() {
    for pair in &*PAIRS {
        let pkcs8 = pair.theirs.to_pkcs8_pem(LineEnding::CRLF).expect("PKCS#8");
        let read = PrivateKey::from_pem(pkcs8.as_bytes(), None).expect("PKCS#8 with CRLF");
        assert!(read.public() == pair.ours.public());
        let spki = pair.their_public.to_public_key_pem(LineEnding::CRLF).expect("SPKI");
        let read = PublicKey::from_pem(spki.as_bytes()).expect("SPKI with CRLF");
        assert!(&read == pair.ours.public());
        assert_eq!(read.text(), pair.ours.public().text());
    }
}

/// One key, many threads: the library's blinding state is shared, the results must not be.
#[test]
fn threads() {
    let key = &PAIRS[2].ours;
    let expected = key.sign(SigAlgo::Pkcs1v15Sha224, b"x").expect("sign");
    std::thread::scope(|scope| {
        for n in 0..8u8 {
            let (key, expected) = (key.clone(), &expected);
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(&key.sign(SigAlgo::Pkcs1v15Sha224, b"x").expect("sign"), expected);
                    let sealed = key.public().encrypt(EncAlgo::OaepSha1, &[n]).expect("encrypt");
                    assert!(key.decrypt(EncAlgo::OaepSha1, &sealed).expect("decrypt").equals(&[n]));
                    key.public().verify_token(&key.token().expect("token")).expect("token");
                }
            });
        }
    });
}
