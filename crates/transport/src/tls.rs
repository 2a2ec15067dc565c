//! TLS for tcp and ws: Salt's `ssl` options on rustls with aws-lc.
//!
//! Files are read when a server starts and whenever a client connects, so a client picks up a renewed certificate.
//!
//! differs: the host name is looked for in the certificate's alternative names only; OpenSSL falls back to the common
//! name of certificates that have none. `ciphers` is not used: rustls offers only suites that are sound.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
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
            let (roots, crls) = trusted(ssl)?;
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
            builder.with_client_cert_verifier(verifier.build().map_err(text)?)
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
        let (roots, crls) = trusted(ssl)?;
        let mut verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider());
        if let Some(depth) = ssl.crl_check {
            verifier = verifier.with_crls(crls);
            if depth == CrlCheck::Leaf {
                verifier = verifier.only_check_end_entity_revocation();
            }
        }
        builder.with_webpki_verifier(verifier.build().map_err(text)?)
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

type Trusted = (RootCertStore, Vec<CertificateRevocationListDer<'static>>);

fn trusted(ssl: &Ssl) -> Result<Trusted, String> {
    let (mut roots, mut crls) = (RootCertStore::empty(), Vec::new());
    let system = || SYSTEM.iter().map(PathBuf::from).find(|path| path.exists());
    let named = !ssl.ca_certs.is_empty() || !ssl.ca_data.is_empty();
    let places: Vec<PathBuf> =
        if named { ssl.ca_certs.clone() } else { system().into_iter().collect() };
    for place in &places {
        for file in files(place)? {
            for certificate in read_certificates(&file)? {
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
            roots.add(certificate.map_err(text)?).map_err(text)?;
        }
    }
    if roots.is_empty() {
        let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        return Err(format!("no certificate authority in {places:?}"));
    }
    Ok((roots, crls))
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
