//! The one door to the C library (AWS-LC): RSA, PEM, digests, random bytes.
//!
//! Takes and gives slices and vectors; no pointer leaves the file. Why C at all: no safe crate signs with SHA-1/SHA-224,
//! does OAEP-SHA224 and the raw private operation of X9.31 in constant time. AWS-LC blinds every private operation and
//! checks its result; nothing here turns that off. The library's error queue (one per thread) is emptied after each
//! failure. Surprising: PEM reading without a password call-back asks on the terminal, so [`ask`] is always passed.
#![expect(unsafe_code, reason = "the crate's only foreign calls; each block says why it is sound")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{self, NonNull};

use aws_lc_sys as c;
use zeroize::Zeroizing;

use crate::{Hash, error::Fault};

/// An RSA key, public or private. Never changed once made.
pub(crate) struct Pkey(NonNull<c::EVP_PKEY>);

// SAFETY: rsa.h and evp.h declare every operation used here usable from several threads at once (blinding has its lock).
unsafe impl Send for Pkey {}
// SAFETY: as above.
unsafe impl Sync for Pkey {}

impl Drop for Pkey {
    fn drop(&mut self) {
        // SAFETY: we own one reference and give it up exactly once; the library wipes what it frees.
        unsafe { c::EVP_PKEY_free(self.0.as_ptr()) }
    }
}

struct Bio(NonNull<c::BIO>);

impl Drop for Bio {
    fn drop(&mut self) {
        // SAFETY: created by us, freed once.
        unsafe { c::BIO_free(self.0.as_ptr()) };
    }
}

/// What the password call-back may tell, and whether it was called at all.
struct Ask<'a> {
    passphrase: Option<&'a [u8]>,
    asked: bool,
}

unsafe extern "C" fn ask(buf: *mut c_char, size: c_int, _: c_int, user: *mut c_void) -> c_int {
    // SAFETY: `user` is the `&mut Ask` that `from_pem` passes, alive for the whole call and not aliased.
    let ask = unsafe { &mut *user.cast::<Ask<'_>>() };
    ask.asked = true;
    let Some(pass) = ask.passphrase.filter(|p| c_int::try_from(p.len()).is_ok_and(|n| n <= size))
    else {
        return -1;
    };
    // SAFETY: the library gives `size` writable bytes at `buf`, and `pass` is not longer.
    unsafe { ptr::copy_nonoverlapping(pass.as_ptr(), buf.cast(), pass.len()) };
    pass.len() as c_int
}

fn check(status: c_int) -> Option<()> {
    if status != 1 {
        // SAFETY: empties this thread's error queue; no preconditions.
        unsafe { c::ERR_clear_error() }
    }
    (status == 1).then_some(())
}

/// Gives `call` a buffer of `max` bytes and the variable for the length used.
fn filled(max: usize, call: impl FnOnce(*mut u8, *mut usize) -> c_int) -> Option<Vec<u8>> {
    let mut out = Zeroizing::new(vec![0; max]);
    let mut len = max;
    check(call(out.as_mut_ptr(), &raw mut len))?;
    out.truncate(len);
    Some(std::mem::take(&mut *out))
}

/// Returns what `write` puts into a memory BIO.
fn written(write: impl FnOnce(*mut c::BIO) -> c_int) -> Option<Zeroizing<Vec<u8>>> {
    // SAFETY: BIO_s_mem returns a static method table; a null result is handled.
    let bio = Bio(NonNull::new(unsafe { c::BIO_new(c::BIO_s_mem()) })?);
    check(write(bio.0.as_ptr()))?;
    let (mut data, mut len) = (ptr::null(), 0usize);
    // SAFETY: both out-pointers are valid; what they describe belongs to `bio`, which outlives the copy below.
    check(unsafe { c::BIO_mem_contents(bio.0.as_ptr(), &raw mut data, &raw mut len) })?;
    let data = NonNull::new(data.cast_mut())?;
    // SAFETY: non-null, `len` bytes, owned by `bio`, not written to meanwhile.
    Some(Zeroizing::new(unsafe { std::slice::from_raw_parts(data.as_ptr(), len) }.to_vec()))
}

fn md(hash: Hash) -> *const c::EVP_MD {
    // SAFETY: these return pointers to static tables.
    unsafe {
        match hash {
            Hash::Md5 => c::EVP_md5(),
            Hash::Sha1 => c::EVP_sha1(),
            Hash::Sha224 => c::EVP_sha224(),
            Hash::Sha256 => c::EVP_sha256(),
            Hash::Sha384 => c::EVP_sha384(),
            Hash::Sha512 => c::EVP_sha512(),
        }
    }
}

impl Pkey {
    fn rsa(&self) -> *mut c::RSA {
        // SAFETY: only RSA keys are ever wrapped; the borrowed pointer lives as long as `self`.
        unsafe { c::EVP_PKEY_get0_RSA(self.0.as_ptr()) }
    }

    /// Makes a new private key with the exponent 65537.
    pub(crate) fn generate(bits: u32) -> Option<Self> {
        let bits = c_int::try_from(bits).ok()?;
        // SAFETY: every object is checked for null before use and freed once (the free functions accept null); set1 takes
        // its own reference to the RSA key.
        unsafe {
            let (rsa, e, key) = (c::RSA_new(), c::BN_new(), c::EVP_PKEY_new());
            let ok = !(rsa.is_null() || e.is_null() || key.is_null())
                && c::BN_set_word(e, 65537) == 1
                && c::RSA_generate_key_ex(rsa, bits, e, ptr::null_mut()) == 1
                && c::EVP_PKEY_set1_RSA(key, rsa) == 1;
            c::BN_free(e);
            c::RSA_free(rsa);
            let key = NonNull::new(key).map(Self);
            check(ok.into()).and(key)
        }
    }

    /// Reads a private key (PKCS#1 or PKCS#8, encrypted or not) or a public one (SubjectPublicKeyInfo). The library
    /// checks the numbers of the key against each other and bounds modulus and exponent.
    pub(crate) fn from_pem(pem: &[u8], private: bool, pass: Option<&[u8]>) -> Result<Self, Fault> {
        let len = c::ossl_ssize_t::try_from(pem.len()).map_err(|_| Fault::Malformed)?;
        let mut user = Ask { passphrase: pass, asked: false };
        // SAFETY: the BIO only reads the live `pem` and is dropped before this function returns; `user` lives through the
        // call and is what `ask` expects; the returned reference is ours.
        let key = unsafe {
            let bio = NonNull::new(c::BIO_new_mem_buf(pem.as_ptr().cast(), len)).map(Bio);
            let bio = bio.ok_or(Fault::Malformed)?;
            let read = if private { c::PEM_read_bio_PrivateKey } else { c::PEM_read_bio_PUBKEY };
            read(bio.0.as_ptr(), ptr::null_mut(), Some(ask), (&raw mut user).cast())
        };
        check(c_int::from(!key.is_null()));
        let fault = if user.asked { Fault::Passphrase } else { Fault::Malformed };
        let key = NonNull::new(key).map(Self).ok_or(fault)?;
        // SAFETY: a live key.
        let kind = unsafe { c::EVP_PKEY_id(key.0.as_ptr()) };
        if kind == c::EVP_PKEY_RSA { Ok(key) } else { Err(Fault::NotRsa) }
    }

    /// Writes PKCS#1, encrypted with AES-256-CBC if there is a passphrase.
    pub(crate) fn private_pem(&self, pass: Option<&[u8]>) -> Option<Zeroizing<Vec<u8>>> {
        let word = pass.map_or(ptr::null(), <[u8]>::as_ptr);
        let len = c_int::try_from(pass.map_or(0, <[u8]>::len)).ok()?;
        // SAFETY: key and BIO are live; `word` and `len` describe the passphrase; without one no cipher is set, so the
        // library asks nobody.
        written(|bio| unsafe {
            let cipher = if pass.is_some() { c::EVP_aes_256_cbc() } else { ptr::null() };
            let none = ptr::null_mut();
            c::PEM_write_bio_RSAPrivateKey(bio, self.rsa(), cipher, word, len, None, none)
        })
    }

    /// Writes SubjectPublicKeyInfo.
    pub(crate) fn public_pem(&self) -> Option<Vec<u8>> {
        // SAFETY: key and BIO are live.
        written(|bio| unsafe { c::PEM_write_bio_PUBKEY(bio, self.0.as_ptr()) })
            .map(|pem| pem.to_vec())
    }

    pub(crate) fn bits(&self) -> u32 {
        // SAFETY: a live RSA key.
        unsafe { c::RSA_bits(self.rsa()) }
    }

    /// Length of the modulus, and of every signature and ciphertext, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// The modulus, big-endian, [`Self::size`] bytes.
    pub(crate) fn modulus(&self) -> Option<Vec<u8>> {
        // SAFETY: n belongs to the live key; the buffer has the length that is passed.
        filled(self.size(), |out, len| unsafe {
            c::BN_bn2bin_padded(out, *len, c::RSA_get0_n(self.rsa()))
        })
    }

    /// RSASSA-PKCS1-v1_5 over a finished digest.
    pub(crate) fn sign(&self, hash: Hash, digest: &[u8]) -> Option<Vec<u8>> {
        let (from, len, mut used) = (digest.as_ptr(), digest.len(), 0);
        // SAFETY: the output buffer has RSA_size bytes, as required; the digest slice is live.
        filled(self.size(), |out, _| unsafe {
            c::RSA_sign(c::EVP_MD_type(md(hash)), from, len, out, &raw mut used, self.rsa())
        })
    }

    pub(crate) fn verify(&self, hash: Hash, digest: &[u8], sig: &[u8]) -> bool {
        let ((from, len), rsa) = ((digest.as_ptr(), digest.len()), self.rsa());
        // SAFETY: a static table.
        let nid = unsafe { c::EVP_MD_type(md(hash)) };
        // SAFETY: both slices are live and described by their own lengths, which the library checks.
        check(unsafe { c::RSA_verify(nid, from, len, sig.as_ptr(), sig.len(), rsa) }).is_some()
    }

    /// block^d mod n (blinded) or block^e mod n, without padding.
    pub(crate) fn raw(&self, private: bool, block: &[u8]) -> Option<Vec<u8>> {
        let run = if private { c::RSA_sign_raw } else { c::RSA_verify_raw };
        let (from, len) = (block.as_ptr(), block.len());
        // SAFETY: the buffer has the length that is passed; the library refuses a block of another length or not below n.
        filled(self.size(), |out, used| unsafe {
            run(self.rsa(), used, out, *used, from, len, c::RSA_NO_PADDING)
        })
    }

    /// RSA-OAEP with MGF1 of the same hash and an empty label.
    pub(crate) fn oaep(&self, hash: Hash, encrypt: bool, data: &[u8]) -> Option<Vec<u8>> {
        // SAFETY: the context is checked for null, used only here and freed once; it holds its own reference to the key.
        // The buffer has RSA_size bytes, the most that either operation writes.
        filled(self.size(), |out, used| unsafe {
            let init = if encrypt { c::EVP_PKEY_encrypt_init } else { c::EVP_PKEY_decrypt_init };
            let run = if encrypt { c::EVP_PKEY_encrypt } else { c::EVP_PKEY_decrypt };
            let ctx = c::EVP_PKEY_CTX_new(self.0.as_ptr(), ptr::null_mut());
            let ok = !ctx.is_null()
                && init(ctx) == 1
                && c::EVP_PKEY_CTX_set_rsa_padding(ctx, c::RSA_PKCS1_OAEP_PADDING) == 1
                && c::EVP_PKEY_CTX_set_rsa_oaep_md(ctx, md(hash)) == 1
                && c::EVP_PKEY_CTX_set_rsa_mgf1_md(ctx, md(hash)) == 1
                && run(ctx, out, used, data.as_ptr(), data.len()) == 1;
            c::EVP_PKEY_CTX_free(ctx);
            ok.into()
        })
    }
}

pub(crate) fn digest(hash: Hash, data: &[u8]) -> Vec<u8> {
    let (from, mut used): (_, c_uint) = (data.as_ptr().cast(), 0);
    // SAFETY: the buffer has the largest digest's length; the input slice is live.
    let out = filled(c::EVP_MAX_MD_SIZE as usize, |out, _| unsafe {
        c::EVP_Digest(from, data.len(), out, &raw mut used, md(hash), ptr::null_mut())
    });
    let mut out = out.expect("a built-in digest fails only for want of memory");
    out.truncate(used as usize);
    out
}

/// Fills `out` from the library's generator, which reseeds itself from the kernel and after a fork.
pub(crate) fn random(out: &mut [u8]) {
    // SAFETY: pointer and length describe a live, writable slice. Cannot fail: without entropy the library aborts.
    unsafe { c::RAND_bytes(out.as_mut_ptr(), out.len()) };
}
