//! TLS for tcp and ws: Salt's `ssl` options on rustls with aws-lc.
//!
//! A certificate that is itself among the trusted ones is taken for itself, as OpenSSL does: those that people sign
//! themselves say that they are an authority, which the verifier of rustls refuses in a server's or a client's.
//!
//! Files are read when a server starts and whenever a client connects, so a client picks up a renewed certificate.
//!
//! differs: the host name is looked for in the certificate's alternative names only; OpenSSL falls back to the common
//! name of certificates that have none. `ciphers` is not used: rustls offers only suites that are sound.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore,
    ServerConfig, SignatureScheme, SupportedProtocolVersion,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::listen::unbracketed;
use crate::options::{CertReqs, CrlCheck, Ssl};
use crate::peer::{Ended, Peer};

/// Where systems keep the certificates they trust.
const SYSTEM: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Any stream: ws runs over plain and over encrypted ones.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(crate) fn boxed(stream: impl Stream + 'static) -> Box<dyn Stream> {
    Box::new(stream)
}

/// Returns what accepts TLS connections as configured.
pub fn acceptor(ssl: &Ssl) -> Result<TlsAcceptor, String> {
    let (chain, key) = identity(ssl)?.ok_or("a server needs `certfile`")?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions(ssl))
        .map_err(text)?;
    let builder = match ssl.cert_reqs.unwrap_or(CertReqs::Required) {
        CertReqs::None => builder.with_no_client_auth(),
        demand => {
            let Trusted { roots, crls, named } = trusted(ssl)?;
            let mut verifier =
                WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
            if let Some(depth) = ssl.crl_check {
                verifier = verifier.with_crls(crls);
                if depth == CrlCheck::Leaf {
                    verifier = verifier.only_check_end_entity_revocation();
                }
            }
            if demand == CertReqs::Optional {
                verifier = verifier.allow_unauthenticated();
            }
            let usual = verifier.build().map_err(text)?;
            builder.with_client_cert_verifier(Arc::new(Themselves { usual, named }))
        }
    };
    let config = builder.with_single_cert(chain, key).map_err(text)?;
    Ok(Arc::new(config).into())
}

/// Finishes the server's side of a handshake, in time.
pub(crate) async fn accept(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    peer: &Peer,
    most: Duration,
) -> Result<server::TlsStream<TcpStream>, Ended> {
    let stream = tokio::select! {
        accepted = tokio::time::timeout(most, acceptor.accept(stream)) => match accepted {
            Ok(accepted) => accepted.map_err(|error| Ended::Io(error.to_string()))?,
            Err(_) => return Err(Ended::HandshakeTimeout),
        },
        () = peer.0.outlet.closed() => return Err(peer.0.outlet.closing().unwrap_or(Ended::Closed)),
    };
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    peer.set_certificates(shown.iter().map(|certificate| certificate.to_vec()).collect());
    Ok(stream)
}

/// Finishes the client's side of a handshake.
pub(crate) async fn connect(
    ssl: &Ssl,
    host: &str,
    stream: TcpStream,
) -> Result<client::TlsStream<TcpStream>, String> {
    let name = ssl.server_name.as_deref().unwrap_or_else(|| unbracketed(host)).to_owned();
    let name = ServerName::try_from(name).map_err(text)?;
    let connector = TlsConnector::from(Arc::new(client_config(ssl)?));
    connector.connect(name, stream).await.map_err(text)
}

/// Makes the settings of a client, for libraries that speak TLS themselves.
pub fn client_config(ssl: &Ssl) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions(ssl))
        .map_err(text)?;
    let builder = if ssl.cert_reqs == Some(CertReqs::None) {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer(provider())))
    } else {
        let Trusted { roots, crls, named } = trusted(ssl)?;
        let mut verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider());
        if let Some(depth) = ssl.crl_check {
            verifier = verifier.with_crls(crls);
            if depth == CrlCheck::Leaf {
                verifier = verifier.only_check_end_entity_revocation();
            }
        }
        let usual: Arc<dyn ServerCertVerifier> = verifier.build().map_err(text)?;
        let verifier = Arc::new(Themselves { usual, named });
        builder.dangerous().with_custom_certificate_verifier(verifier)
    };
    match identity(ssl)? {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(text),
        None => Ok(builder.with_no_client_auth()),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

static ONLY_12: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS12];
static ONLY_13: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

fn versions(ssl: &Ssl) -> &'static [&'static SupportedProtocolVersion] {
    match ssl.ssl_version.as_deref() {
        // The number is Python's, which the configuration's loader makes of the name.
        Some("PROTOCOL_TLSv1_2" | "5") => &ONLY_12,
        Some("PROTOCOL_TLSv1_3") => &ONLY_13,
        _ => rustls::ALL_VERSIONS,
    }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(ssl: &Ssl) -> Result<Option<Identity>, String> {
    let Some(certfile) = &ssl.certfile else { return Ok(None) };
    let keyfile = ssl.keyfile.as_ref().unwrap_or(certfile);
    let chain = read_certificates(certfile)?;
    if chain.is_empty() {
        return Err(format!("{}: no certificate", certfile.display()));
    }
    let key = PrivateKeyDer::from_pem_file(keyfile).map_err(|error| in_file(keyfile, error))?;
    Ok(Some((chain, key)))
}

/// Whom to believe.
struct Trusted {
    roots: RootCertStore,
    crls: Vec<CertificateRevocationListDer<'static>>,
    /// The certificates the configuration names, for those who show one of them; none if revocation is looked up.
    named: Vec<CertificateDer<'static>>,
}

fn trusted(ssl: &Ssl) -> Result<Trusted, String> {
    let (mut roots, mut crls) = (RootCertStore::empty(), Vec::new());
    let system = || SYSTEM.iter().map(PathBuf::from).find(|path| path.exists());
    let is_named = !ssl.ca_certs.is_empty() || !ssl.ca_data.is_empty();
    let mut named = Vec::new();
    let places: Vec<PathBuf> =
        if is_named { ssl.ca_certs.clone() } else { system().into_iter().collect() };
    for place in &places {
        for file in files(place)? {
            for certificate in read_certificates(&file)? {
                if is_named {
                    named.push(certificate.clone());
                }
                // One certificate of a bundle that we cannot use must not spoil the others.
                let _ = roots.add(certificate);
            }
            if ssl.crl_check.is_some() {
                let found = CertificateRevocationListDer::pem_file_iter(&file);
                let found = found.map_err(|error| in_file(&file, error))?;
                crls.extend(found.collect::<Result<Vec<_>, _>>().map_err(|e| in_file(&file, e))?);
            }
        }
    }
    for data in &ssl.ca_data {
        for certificate in CertificateDer::pem_slice_iter(data.as_bytes()) {
            let certificate = certificate.map_err(text)?;
            named.push(certificate.clone());
            roots.add(certificate).map_err(text)?;
        }
    }
    if roots.is_empty() {
        let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        return Err(format!("no certificate authority in {places:?}"));
    }
    if ssl.crl_check.is_some() {
        named.clear();
    }
    Ok(Trusted { roots, crls, named })
}

/// Returns the files of a folder of certificates, or the file itself.
fn files(place: &Path) -> Result<Vec<PathBuf>, String> {
    if !place.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let entries = std::fs::read_dir(place).map_err(|error| in_file(place, error))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| in_file(file, error))
}

fn in_file(file: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Takes the certificates the configuration names for themselves, if name and time are right; the others as usual.
#[derive(Debug)]
struct Themselves<V> {
    usual: V,
    named: Vec<CertificateDer<'static>>,
}

impl<V> Themselves<V> {
    fn knows(&self, shown: &CertificateDer<'_>, now: UnixTime) -> Result<bool, rustls::Error> {
        if !self.named.iter().any(|own| own == shown) {
            return Ok(false);
        }
        let wrong = |error| Err(rustls::Error::InvalidCertificate(error));
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match validity(shown) {
            None => wrong(CertificateError::BadEncoding),
            Some((from, _)) if now < from => wrong(CertificateError::NotValidYet),
            Some((_, until)) if now > until => wrong(CertificateError::Expired),
            Some(_) => Ok(true),
        }
    }
}

impl ServerCertVerifier for Themselves<Arc<dyn ServerCertVerifier>> {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.knows(shown, now)? {
            verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.usual.verify_server_cert(shown, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

impl ClientCertVerifier for Themselves<Arc<dyn ClientCertVerifier>> {
    fn offer_client_auth(&self) -> bool {
        self.usual.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.usual.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.usual.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        if self.knows(shown, now)? {
            return Ok(ClientCertVerified::assertion());
        }
        self.usual.verify_client_cert(shown, between, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Takes the first element of DER: its tag, its body, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short if short < 0x80 => (usize::from(short), rest),
        long => {
            let count = usize::from(long & 0x7f);
            let digits = rest.get(..count).filter(|_| (1..=4).contains(&count))?;
            let length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
            (length, &rest[count..])
        }
    };
    Some((tag, rest.get(..length)?, &rest[length..]))
}

/// Returns from when until when a certificate is good, in seconds.
fn validity(certificate: &[u8]) -> Option<(i64, i64)> {
    let (_, whole, _) = element(certificate)?;
    let (_, mut inside, _) = element(whole)?;
    // The version may be left out.
    if inside.first() == Some(&0xa0) {
        inside = element(inside)?.2;
    }
    // Number, algorithm, issuer.
    for _ in 0..3 {
        inside = element(inside)?.2;
    }
    let (_, times, _) = element(inside)?;
    let (kind, from, rest) = element(times)?;
    let (other, until, _) = element(rest)?;
    Some((seconds(kind, from)?, seconds(other, until)?))
}

/// Reads `YYMMDDhhmmssZ` (23) or `YYYYMMDDhhmmssZ` (24).
fn seconds(kind: u8, text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = text.split_at_checked(if kind == 0x17 { 2 } else { 4 })?;
    let mut year: i64 = year.parse().ok()?;
    if kind == 0x17 {
        year += if year < 50 { 2000 } else { 1900 };
    }
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i64>().ok();
    let (month, day) = (part(0)?, part(2)?);
    if rest.len() != 10 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970: years begin in March, so that the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let in_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + of_year - 719_468;
    Some(days * 86_400 + part(4)? * 3600 + part(6)? * 60 + part(8)?)
}

/// `cert_reqs: CERT_NONE`: takes any certificate; the handshake's own signature must still be right.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
