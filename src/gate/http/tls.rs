//! TLS for the listener; the certificate can be replaced while connections are open.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;
use tokio_rustls::TlsAcceptor;

use super::authority::AuthorityFiles;
use super::certificate::Certificate;
use super::subject::{CertificateSubject, CertificateSubjects};
use super::tls_error::TlsError;
use gatewren_base::sys::{files, lock, read_lock, write_lock};
use gatewren_http_client::Pin;

/// The maximum size of a certificate chain or key; a larger file is rejected.
pub(super) const MAX_PEM_BYTES: usize = 1 << 20;

/// The protocols inside TLS, the preferred first (RFC 7301).
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The source of the certificate.
#[derive(Debug, Clone)]
pub enum TlsSource {
    /// gatewren's own authority, with its files in a directory that is created if missing.
    Own {
        /// The directory, `tls` in the state directory.
        directory: PathBuf,
        /// The subjects that the certificate should cover.
        subjects: CertificateSubjects,
    },
    /// Two files that the owner supplies.
    Files {
        /// The chain as PEM, leaf first.
        cert: PathBuf,
        /// The key as PEM.
        key: PathBuf,
    },
}

impl TlsSource {
    /// The path of the served certificate.
    pub fn certificate(&self) -> PathBuf {
        match self {
            Self::Own { directory, .. } => AuthorityFiles::at(directory).cert,
            Self::Files { cert, .. } => cert.clone(),
        }
    }

    /// The path of its key.
    pub fn key(&self) -> PathBuf {
        match self {
            Self::Own { directory, .. } => AuthorityFiles::at(directory).key,
            Self::Files { key, .. } => key.clone(),
        }
    }

    /// The path of the authority's certificate for clients to trust, if gatewren has its own authority.
    pub fn ca(&self) -> Option<PathBuf> {
        match self {
            Self::Own { directory, .. } => Some(AuthorityFiles::at(directory).ca),
            Self::Files { .. } => None,
        }
    }
}

/// TLS acceptors; each uses the HTTP version that it prefers if the client offers it.
#[derive(Clone)]
pub struct Acceptors {
    /// Prefers HTTP/2.
    pub http2_first: TlsAcceptor,
    /// Prefers HTTP/1.1.
    pub http1_first: TlsAcceptor,
}

/// The server side of TLS.
pub struct TlsServer {
    source: Mutex<TlsSource>,
    current: Arc<CurrentCertificate>,
    config: Arc<ServerConfig>,
}

impl TlsServer {
    /// Creates or reads the certificate. Enables TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, session tickets.
    pub fn load(source: TlsSource) -> Result<Self, TlsError> {
        let current = Arc::new(CurrentCertificate(RwLock::new(ServedCertificate::from(
            &source,
        )?)));
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<CurrentCertificate>::clone(&current));
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        config.ticketer = ring::Ticketer::new().map_err(TlsError::Setup)?;
        Ok(Self {
            source: Mutex::new(source),
            current,
            config: Arc::new(config),
        })
    }

    /// Checks whether a certificate is available, without creating or writing anything. Returns the end of validity
    /// of a supplied certificate, in seconds since 1970; one of the own authority is renewed in time.
    pub fn examine(source: &TlsSource) -> Result<Option<i64>, TlsError> {
        match source {
            TlsSource::Own {
                directory,
                subjects,
            } => {
                let authority = AuthorityFiles::at(directory);
                let examined = authority.examine(subjects, OffsetDateTime::now_utc());
                examined.map(|()| None).map_err(TlsError::Authority)
            }
            TlsSource::Files { cert, key } => {
                let served = ServedCertificate::read(cert, key, Vec::new());
                served.map(|served| Some(served.not_after))
            }
        }
    }

    /// Returns the pin by which clients identify this server without an installed authority, without creating or
    /// writing anything. It is the pin of the own authority's key, which outlives the certificates that it signs,
    /// or of the supplied certificate's key.
    pub fn pin_of(source: &TlsSource) -> Result<Pin, TlsError> {
        let path = match source {
            TlsSource::Own { directory, .. } => AuthorityFiles::at(directory).ca,
            TlsSource::Files { cert, .. } => cert.clone(),
        };
        let chain = chain(&path).map_err(|cause| match (cause, source) {
            (TlsError::Missing { path, .. }, TlsSource::Own { .. }) => {
                TlsError::NotMade { ca: path }
            }
            (cause, _) => cause,
        })?;
        let pin = chain.first().and_then(|first| Pin::of(first));
        pin.ok_or_else(|| not_pem("certificate", &path))
    }

    /// Issues a new certificate of the own authority, even if the old one is valid. Supplied certificates are not
    /// changed.
    pub fn renew(source: &TlsSource) -> Result<(), TlsError> {
        let TlsSource::Own {
            directory,
            subjects,
        } = source
        else {
            return Ok(());
        };
        let authority = AuthorityFiles::at(directory);
        let _alone = authority.lock();
        let renewed = authority.renew(subjects, OffsetDateTime::now_utc());
        renewed.map_err(TlsError::Authority)
    }

    /// Checks the source again: renews a certificate that soon expires, reads one that was replaced. New
    /// connections get the new certificate; after an error they still get the old one.
    #[cfg(test)]
    pub fn reload(&self) -> Result<(), TlsError> {
        let source = lock(&self.source);
        self.current.replace(ServedCertificate::from(&source)?);
        Ok(())
    }

    /// Switches to another source: other settings, or other names and addresses of the host.
    pub fn reload_from(&self, other: TlsSource) -> Result<(), TlsError> {
        let mut source = lock(&self.source);
        self.current.replace(ServedCertificate::from(&other)?);
        *source = other;
        Ok(())
    }

    /// Returns the acceptors; after a reload they use the new certificate.
    pub fn acceptors(&self) -> Acceptors {
        let mut http1_first = ServerConfig::clone(&self.config);
        http1_first.alpn_protocols.reverse();
        Acceptors {
            http2_first: TlsAcceptor::from(Arc::clone(&self.config)),
            http1_first: TlsAcceptor::from(Arc::new(http1_first)),
        }
    }

    /// The path of the authority's certificate for clients to trust, if gatewren has its own authority.
    pub fn ca(&self) -> Option<PathBuf> {
        let source = lock(&self.source);
        source.ca()
    }

    /// Returns the pin that clients use.
    pub fn pin(&self) -> Result<Pin, TlsError> {
        let source = lock(&self.source);
        Self::pin_of(&source)
    }

    /// The subjects of the certificate in use.
    pub fn subjects(&self) -> Vec<CertificateSubject> {
        self.current.read(|served| served.subjects.clone())
    }

    /// The end of validity of the certificate in use, in seconds since 1970.
    pub fn expires(&self) -> i64 {
        self.current.read(|served| served.not_after)
    }
}

/// The certificate in use.
#[derive(Debug)]
struct CurrentCertificate(RwLock<ServedCertificate>);

#[derive(Debug)]
struct ServedCertificate {
    certified: Arc<CertifiedKey>,
    /// For clients that ask by a name, where the own authority also covers addresses.
    by_name: Option<Arc<CertifiedKey>>,
    subjects: Vec<CertificateSubject>,
    not_after: i64,
}

impl CurrentCertificate {
    fn read<T>(&self, look: impl FnOnce(&ServedCertificate) -> T) -> T {
        look(&read_lock(&self.0))
    }

    fn replace(&self, served: ServedCertificate) {
        *write_lock(&self.0) = served;
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let by_name = hello.server_name().is_some();
        Some(self.read(|served| {
            let named = served.by_name.as_ref().filter(|_| by_name);
            Arc::clone(named.unwrap_or(&served.certified))
        }))
    }
}

impl ServedCertificate {
    fn from(source: &TlsSource) -> Result<Self, TlsError> {
        match source {
            TlsSource::Own {
                directory,
                subjects,
            } => {
                let authority = AuthorityFiles::at(directory);
                let _alone = authority.lock();
                authority
                    .ensure(subjects, OffsetDateTime::now_utc())
                    .map_err(TlsError::Authority)?;
                // The authority is sent as well: a client that only has its pin cannot get it otherwise.
                let too = chain(&authority.ca)?;
                let mut served = Self::read(&authority.cert, &authority.key, too.clone())?;
                served.by_name = Some(served.part(&authority, too)?);
                Ok(served)
            }
            TlsSource::Files { cert, key } => Self::read(cert, key, Vec::new()),
        }
    }

    /// Issues the certificate for only the names; the chain continues with `others`.
    fn part(
        &self,
        authority: &AuthorityFiles,
        others: Vec<CertificateDer<'static>>,
    ) -> Result<Arc<CertifiedKey>, TlsError> {
        let named = authority.by_name(&self.subjects, OffsetDateTime::now_utc());
        let mut chain = vec![named.map_err(TlsError::Authority)?];
        chain.extend(others);
        let key = Arc::clone(&self.certified.key);
        Ok(Arc::new(CertifiedKey::new(chain, key)))
    }

    /// Reads a chain and its key; the chain continues with `others`.
    fn read(
        cert: &Path,
        key: &Path,
        others: Vec<CertificateDer<'static>>,
    ) -> Result<Self, TlsError> {
        let mut chain = chain(cert)?;
        chain.extend(others);
        let leaf = chain.first().and_then(|leaf| Certificate::read(leaf));
        let leaf = leaf.ok_or_else(|| not_pem("certificate", cert))?;
        let certified = CertifiedKey::new(chain, signing_key(key)?);
        certified.keys_match().map_err(|_| TlsError::Mismatch {
            cert: cert.to_owned(),
            key: key.to_owned(),
        })?;
        if leaf.not_after <= OffsetDateTime::now_utc().unix_timestamp() {
            tracing::warn!(cert = %cert.display(), "the certificate has expired; clients will reject it");
        }
        Ok(Self {
            certified: Arc::new(certified),
            by_name: None,
            subjects: leaf.subjects,
            not_after: leaf.not_after,
        })
    }
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read("certificate", path)?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|_| not_pem("certificate", path))?;
    if chain.is_empty() {
        return Err(not_pem("certificate", path));
    }
    Ok(chain)
}

fn signing_key(path: &Path) -> Result<Arc<dyn rustls::sign::SigningKey>, TlsError> {
    let pem = read("key", path)?;
    let mode = files::mode(path).map_err(TlsError::Unreadable)?;
    if mode & 0o077 != 0 {
        let path = path.to_owned();
        return Err(TlsError::OpenKey { path, mode });
    }
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| not_pem("key", path))?;
    ring::sign::any_supported_type(&key).map_err(|_| TlsError::UnsupportedKey {
        path: path.to_owned(),
    })
}

pub(super) fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    files::read_bounded(path, MAX_PEM_BYTES).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => TlsError::Missing {
            what,
            path: path.to_owned(),
        },
        _ => TlsError::Unreadable(cause),
    })
}

pub(super) fn not_pem(what: &'static str, path: &Path) -> TlsError {
    TlsError::NotPem {
        what,
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::Write as _;
    use std::net::SocketAddr;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Command, Stdio};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::super::issue::{self, IssuedCertificate};
    use super::*;
    use gatewren_base::sys::Scratch;

    fn own(scratch: &Scratch, found: &[&str]) -> TlsSource {
        TlsSource::Own {
            directory: scratch.join("tls"),
            subjects: CertificateSubjects {
                asked: vec!["box.lan".parse().unwrap()],
                found: found.iter().map(|text| text.parse().unwrap()).collect(),
            },
        }
    }

    /// A pair as the owner might supply it, as two files.
    fn pair(scratch: &Scratch, name: &str) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(["box.lan".to_owned()]).unwrap();
        let (cert, key) = (
            scratch.join(&format!("{name}.pem")),
            scratch.join(&format!("{name}.key")),
        );
        std::fs::write(&cert, made.cert.pem()).unwrap();
        files::write_private(&key, made.signing_key.serialize_pem().as_bytes()).unwrap();
        (cert, key)
    }

    fn load_error(cert: &Path, key: &Path) -> String {
        let (cert, key) = (cert.to_owned(), key.to_owned());
        match TlsServer::load(TlsSource::Files { cert, key }) {
            Ok(_) => panic!("this pair should have been refused"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn who_asks_by_a_name_is_shown_names_alone_and_the_same_key() {
        let scratch = Scratch::new();
        let tls = TlsServer::load(own(&scratch, &["192.168.1.5"])).unwrap();
        tls.current.read(|served| {
            let named = served.by_name.as_ref().unwrap();
            let (whole, named) = (&served.certified.cert[0], &named.cert[0]);
            let is_name =
                |subject: &CertificateSubject| matches!(subject, CertificateSubject::Name(_));
            let held = |der: &[u8]| Certificate::read(der).unwrap().subjects;
            let (mut all, by_name) = (held(whole), held(named));
            assert!(!all.iter().all(is_name), "{all:?}");
            all.retain(is_name);
            assert_eq!(by_name, all, "every name of it");
            assert!(by_name.contains(&"box.lan".parse().unwrap()));
            assert!(Pin::of(whole).is_some() && Pin::of(whole) == Pin::of(named));
        });
    }

    #[test]
    fn several_fronts_at_once_have_one_authority_and_one_certificate_that_fits_its_key() {
        let scratch = Scratch::new();
        let load = || TlsServer::load(own(&scratch, &[])).and_then(|tls| tls.pin());
        let pins = std::thread::scope(|scope| {
            let fronts: Vec<_> = (0..8).map(|_| scope.spawn(load)).collect();
            let pins = fronts.into_iter().map(|front| front.join().unwrap());
            pins.collect::<Result<Vec<_>, _>>()
        });
        let pins = pins.unwrap();
        assert!(pins.iter().all(|pin| *pin == pins[0]), "{pins:?}");
    }

    /// Answers each connection with a line, until the test ends.
    async fn serve(tls: &TlsServer) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = tls.acceptors().http2_first;
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(socket).await else {
                        return;
                    };
                    let mut request = [0; 1024];
                    let _ = stream.read(&mut request).await;
                    let answer =
                        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nyes";
                    let _ = stream.write_all(answer).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        address
    }

    /// Returns a program's stdout and stderr; `None` if it is not installed.
    async fn run_program(
        program: &'static str,
        arguments: Vec<String>,
        input: &'static str,
    ) -> Option<String> {
        let run = move || {
            let child = Command::new(program)
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            let Ok(mut child) = child else {
                // Not `eprintln!`: the test's own output is only shown when it fails.
                let _ = writeln!(std::io::stderr(), "SKIPPED: {program} is not installed");
                return None;
            };
            let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
            let output = child.wait_with_output().unwrap();
            let both = [output.stdout, output.stderr].concat();
            Some(String::from_utf8_lossy(&both).into_owned())
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }

    #[tokio::test]
    async fn curl_trusts_it_by_name_and_by_address_in_both_versions() {
        let scratch = Scratch::new();
        let tls = TlsServer::load(own(&scratch, &["192.168.77.7"])).unwrap();
        let port = serve(&tls).await.port();
        let ca = tls.ca().unwrap().display().to_string();
        for host in ["box.lan", "localhost", "127.0.0.1", "192.168.77.7"] {
            for version in [
                ["--tlsv1.3", "--tls-max", "1.3"],
                ["--tlsv1.2", "--tls-max", "1.2"],
            ] {
                let mut arguments = version.map(str::to_owned).to_vec();
                arguments.extend(
                    [
                        "-sS",
                        "--http1.1",
                        "--max-time",
                        "120",
                        "--noproxy",
                        "*",
                        "--cacert",
                    ]
                    .map(str::to_owned),
                );
                arguments.extend([
                    ca.clone(),
                    "--connect-to".to_owned(),
                    format!("::127.0.0.1:{port}"),
                ]);
                arguments.push(format!("https://{host}:{port}/"));
                if let Some(output) = run_program("curl", arguments, "").await {
                    assert_eq!(output, "yes", "{host} {version:?}");
                }
            }
        }
        let arguments = [
            "-sS",
            "--max-time",
            "120",
            "--noproxy",
            "*",
            "--cacert",
            &ca,
            "--connect-to",
        ];
        let mut arguments = arguments.map(str::to_owned).to_vec();
        arguments.extend([
            format!("::127.0.0.1:{port}"),
            format!("https://other.lan:{port}/"),
        ]);
        if let Some(output) = run_program("curl", arguments, "").await {
            assert!(
                output.contains("curl: (60)"),
                "another name is not trusted: {output}"
            );
        }
    }

    #[tokio::test]
    async fn openssl_finds_the_chain_good_in_its_strictest_mood() {
        let scratch = Scratch::new();
        let tls = TlsServer::load(own(&scratch, &[])).unwrap();
        let ca = tls.ca().unwrap();
        let cert = ca.with_file_name("cert.pem");
        let (ca, cert) = (ca.display().to_string(), cert.display().to_string());
        let arguments = [
            "verify",
            "-x509_strict",
            "-purpose",
            "sslserver",
            "-verify_hostname",
            "box.lan",
            "-CAfile",
            &ca,
            &cert,
        ];
        if let Some(output) =
            run_program("openssl", arguments.map(str::to_owned).to_vec(), "").await
        {
            assert_eq!(output.trim(), format!("{cert}: OK"));
        }
    }

    #[tokio::test]
    async fn openssl_refuses_what_the_authority_may_not_sign() {
        let scratch = Scratch::new();
        let tls = TlsServer::load(own(&scratch, &[])).unwrap();
        let ca = tls.ca().unwrap();
        let authority = IssuedCertificate {
            cert: std::fs::read_to_string(&ca).unwrap(),
            key: std::fs::read_to_string(ca.with_file_name("ca.key")).unwrap(),
        };
        for outside in [
            "bank.example",
            "8.8.8.8",
            "2001:4860:4860::8888",
            "router.lan",
            "nas.local",
        ] {
            let subject = [outside.parse().unwrap()];
            let forged = issue::server(&authority, &subject, OffsetDateTime::now_utc()).unwrap();
            let path = scratch.join("forged.pem");
            std::fs::write(&path, forged.cert).unwrap();
            let arguments = vec![
                "verify".to_owned(),
                "-CAfile".to_owned(),
                ca.display().to_string(),
                path.display().to_string(),
            ];
            if let Some(output) = run_program("openssl", arguments, "").await {
                assert!(
                    output.contains("permitted subtree violation"),
                    "{outside}: {output}"
                );
            }
        }
    }

    #[tokio::test]
    async fn python_trusts_it_in_its_strictest_mood() {
        const PROGRAM: &str = "\
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
context.verify_flags |= ssl.VERIFY_X509_STRICT
context.set_alpn_protocols(['h2', 'http/1.1'])
with socket.create_connection(('127.0.0.1', int(sys.argv[2])), 120) as plain:
    with context.wrap_socket(plain, server_hostname='box.lan') as tls:
        print(tls.version(), tls.selected_alpn_protocol())
";
        let scratch = Scratch::new();
        let tls = TlsServer::load(own(&scratch, &[])).unwrap();
        let port = serve(&tls).await.port().to_string();
        let arguments = vec![
            "-".to_owned(),
            tls.ca().unwrap().display().to_string(),
            port,
        ];
        if let Some(output) = run_program("python3", arguments, PROGRAM).await {
            assert_eq!(output.trim(), "TLSv1.3 h2");
        }
    }

    #[tokio::test]
    async fn node_trusts_it() {
        const PROGRAM: &str = "\
const [,, ca, port] = process.argv;
const options = { ca: require('fs').readFileSync(ca), servername: 'box.lan', host: '127.0.0.1', port };
const socket = require('tls').connect(options, () => {
  console.log(socket.authorized, socket.getProtocol());
  socket.destroy();
});
socket.on('error', (error) => console.log(error.message));
";
        let scratch = Scratch::new();
        let tls = TlsServer::load(own(&scratch, &[])).unwrap();
        let port = serve(&tls).await.port().to_string();
        let arguments = vec![
            "-".to_owned(),
            tls.ca().unwrap().display().to_string(),
            port,
        ];
        if let Some(output) = run_program("node", arguments, PROGRAM).await {
            assert_eq!(output.trim(), "true TLSv1.3");
        }
    }

    /// The number of names and addresses that a client which trusts only the own authority sees.
    async fn connections_seen_by_rustls(tls: &TlsServer, address: SocketAddr) -> usize {
        let ca = std::fs::read(tls.ca().unwrap()).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&ca).unwrap())
            .unwrap();
        let provider = Arc::new(ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let name = "box.lan".try_into().unwrap();
        let stream = connector.connect(name, socket).await.unwrap();
        let chain = stream.get_ref().1.peer_certificates().unwrap();
        Certificate::read(&chain[0]).unwrap().subjects.len()
    }

    #[tokio::test]
    async fn a_reload_changes_what_new_connections_see_without_a_new_acceptor() {
        let scratch = Scratch::new();
        let tls = TlsServer::load(own(&scratch, &[])).unwrap();
        let address = serve(&tls).await;
        assert_eq!(connections_seen_by_rustls(&tls, address).await, 2);
        tls.reload_from(own(&scratch, &["10.0.0.5", "box.local"]))
            .unwrap();
        assert_eq!(
            connections_seen_by_rustls(&tls, address).await,
            3,
            "by a name"
        );
        assert!(tls.subjects().contains(&"10.0.0.5".parse().unwrap()));

        let (cert, key) = pair(&scratch, "other");
        std::fs::write(&cert, "damaged").unwrap();
        assert!(tls.reload_from(TlsSource::Files { cert, key }).is_err());
        assert_eq!(
            connections_seen_by_rustls(&tls, address).await,
            3,
            "the old one still serves"
        );
        tls.reload().unwrap();
    }

    #[test]
    fn the_pin_that_is_told_is_of_the_authority_or_of_the_one_in_the_files() {
        let scratch = Scratch::new();
        let source = own(&scratch, &[]);
        let early = TlsServer::pin_of(&source).unwrap_err().to_string();
        assert!(early.contains("start gatewren once"), "{early}");
        let tls = TlsServer::load(source.clone()).unwrap();
        let pin = TlsServer::pin_of(&source).unwrap();
        let sent = tls.current.read(|served| served.certified.cert.clone());
        assert_eq!(sent.len(), 2, "the authority is sent behind the leaf");
        assert_ne!(Pin::of(&sent[0]), Some(pin));
        assert_eq!(Pin::of(&sent[1]), Some(pin));
        tls.reload_from(own(&scratch, &["10.0.0.5"])).unwrap();
        let renewed = tls.current.read(|served| served.certified.cert.clone());
        assert_ne!(renewed[0], sent[0]);
        assert_eq!(Pin::of(&renewed[1]), Some(pin), "a renewal keeps the pin");

        let (cert, key) = pair(&scratch, "a");
        let der = chain(&cert).unwrap();
        let source = TlsSource::Files { cert, key };
        assert_eq!(
            TlsServer::pin_of(&source).unwrap(),
            Pin::of(&der[0]).unwrap()
        );
        let none = scratch.join("none.pem");
        let gone = TlsSource::Files {
            cert: none.clone(),
            key: none,
        };
        let missing = TlsServer::pin_of(&gone).unwrap_err().to_string();
        assert!(missing.contains("does not exist"), "{missing}");
    }

    #[test]
    fn a_pair_that_cannot_serve_is_refused_with_its_remedy() {
        let scratch = Scratch::new();
        let (cert, key) = pair(&scratch, "a");
        let (_, other) = pair(&scratch, "b");
        let none = scratch.join("none.pem");
        let (c, k) = (cert.display(), key.display());
        assert!(
            TlsServer::load(TlsSource::Files {
                cert: cert.clone(),
                key: key.clone()
            })
            .is_ok()
        );
        assert_eq!(
            load_error(&none, &key),
            format!(
                "the certificate {} does not exist; correct tls.cert and tls.key, or set tls.mode = \
                 \"own\"",
                none.display()
            )
        );
        assert!(load_error(&cert, &none).starts_with("the key "));
        assert_eq!(
            load_error(&cert, &other),
            format!(
                "the key {} does not match the certificate {c}; configure a matching pair, \
                 with the server's own certificate first in its file",
                other.display()
            )
        );
        assert_eq!(
            load_error(&key, &key),
            format!("found no certificate in {k}; it must be PEM, with a line -----BEGIN …-----")
        );
        for mode in [0o640, 0o604] {
            std::fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
            assert_eq!(
                load_error(&cert, &key),
                format!("other users can read the key {k} (mode {mode:04o}); run: chmod 600 {k}")
            );
        }
        std::fs::write(
            &key,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        )
        .unwrap();
        std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        assert!(load_error(&cert, &key).contains("has an unsupported type"));
        let folder = scratch.path();
        assert!(load_error(folder, &key).starts_with("cannot read "));
    }
}
