//! gatewren's own certificate authority and the server's certificate: stored in files and renewed in time.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use time::{Duration, OffsetDateTime};

use super::certificate::Certificate;
use super::issue::{self, IssuedCertificate};
use super::subject::{CertificateSubject, CertificateSubjects};
use gatewren_base::sys::{DirectoryLock, FileError, files, wait_for_directory_lock};

/// How long before it expires the server's certificate is renewed.
const RENEW_BEFORE: Duration = Duration::days(30);

/// The maximum size of a file of this module; it never writes a larger one.
const MAX_BYTES: usize = 64 << 10;

/// The paths of the authority's files.
#[derive(Debug, Clone)]
pub(super) struct AuthorityFiles {
    /// The authority's certificate, which clients are to trust.
    pub ca: PathBuf,
    ca_key: PathBuf,
    /// The server's certificate.
    pub cert: PathBuf,
    /// The server's key.
    pub key: PathBuf,
}

/// Why the authority cannot provide a certificate.
#[derive(Debug)]
pub enum AuthorityError {
    /// A file could not be read or written.
    File(FileError),
    /// A file is missing or damaged.
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// The authority's certificate has expired.
    Expired {
        /// The authority's certificate.
        ca: PathBuf,
    },
    /// The authority's name constraints do not permit this subject.
    NotPermitted {
        /// The requested subject.
        subject: CertificateSubject,
        /// The authority's certificate.
        ca: PathBuf,
    },
    /// Generating a key or a certificate failed.
    Making(rcgen::Error),
}

impl fmt::Display for AuthorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(cause) => write!(
                f,
                "{cause}; the directory must belong to the user that gatewren runs as"
            ),
            Self::Broken { path } => write!(
                f,
                "{} is missing or damaged; restore it from a backup, or {}",
                path.display(),
                RemovalAdvice(path)
            ),
            Self::Expired { ca } => write!(
                f,
                "the certificate authority {} has expired; {}",
                ca.display(),
                RemovalAdvice(ca)
            ),
            Self::NotPermitted { subject, ca } => write!(
                f,
                "the certificate authority {} is limited to the names that this server had when it was created, \
                 and cannot sign for {subject}. Remove {subject} from the settings, use a certificate of your \
                 own (gatewren cert install), or {}",
                ca.display(),
                RemovalAdvice(ca)
            ),
            Self::Making(cause) => write!(f, "the certificate could not be created: {cause}"),
        }
    }
}

/// How to start over, given one of the files.
struct RemovalAdvice<'a>(&'a Path);

impl fmt::Display for RemovalAdvice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.0.parent().unwrap_or(self.0).display();
        write!(
            f,
            "remove the directory {directory} to create a new authority; every client must then trust the new \
             ca.pem"
        )
    }
}

impl std::error::Error for AuthorityError {}

impl From<FileError> for AuthorityError {
    fn from(cause: FileError) -> Self {
        Self::File(cause)
    }
}

impl AuthorityFiles {
    /// The authority with its files in this directory.
    pub(super) fn at(directory: &Path) -> Self {
        Self {
            ca: directory.join("ca.pem"),
            ca_key: directory.join("ca.key"),
            cert: directory.join("cert.pem"),
            key: directory.join("key.pem"),
        }
    }

    /// Locks these files until the lock is dropped. Without it, two fronts could write a key and a certificate that do
    /// not match. `None` if the directory cannot be written; then no process with the same user writes the files.
    pub(super) fn lock(&self) -> Option<DirectoryLock> {
        let directory = self.ca.parent()?;
        files::private_dir(directory).ok()?;
        wait_for_directory_lock(directory).ok()
    }

    /// Creates missing files: the authority on the first start, and the server's certificate whenever it soon
    /// expires or does not cover all subjects.
    pub(super) fn ensure(
        &self,
        subjects: &CertificateSubjects,
        now: OffsetDateTime,
    ) -> Result<(), AuthorityError> {
        if !self.ca.exists() && !self.cert.exists() {
            self.issue_for_found(subjects, now)?;
        }
        let authority = self.usable_authority(subjects, now)?;
        let wanted = Self::certificate_subjects(&authority, subjects);
        if self.is_good(&authority, &wanted, now) {
            return Ok(());
        }
        self.make(&wanted, now)
    }

    /// Like `ensure`, but always issues a new certificate for the server.
    pub(super) fn renew(
        &self,
        subjects: &CertificateSubjects,
        now: OffsetDateTime,
    ) -> Result<(), AuthorityError> {
        if !self.ca.exists() && !self.cert.exists() {
            self.issue_for_found(subjects, now)?;
        }
        let authority = self.usable_authority(subjects, now)?;
        self.make(&Self::certificate_subjects(&authority, subjects), now)
    }

    fn make(
        &self,
        wanted: &[CertificateSubject],
        now: OffsetDateTime,
    ) -> Result<(), AuthorityError> {
        let made = issue::server(&self.signer()?, wanted, now).map_err(AuthorityError::Making)?;
        // Key first: the next check replaces a certificate that does not match its key.
        files::write_private(&self.key, made.key.as_bytes())?;
        files::write_private(&self.cert, made.cert.as_bytes())?;
        tracing::info!(cert = %self.cert.display(), "created a new server certificate");
        Ok(())
    }

    /// Checks whether a certificate for all subjects is possible, without creating or writing anything.
    pub(super) fn examine(
        &self,
        subjects: &CertificateSubjects,
        now: OffsetDateTime,
    ) -> Result<(), AuthorityError> {
        if !self.ca.exists() && !self.cert.exists() {
            return Ok(());
        }
        self.usable_authority(subjects, now).map(drop)
    }

    /// Returns the authority if it is valid and can sign for all subjects that the settings name.
    fn usable_authority(
        &self,
        subjects: &CertificateSubjects,
        now: OffsetDateTime,
    ) -> Result<Certificate, AuthorityError> {
        let authority = read(&self.ca)?;
        let ca = || self.ca.clone();
        if authority.not_after <= now.unix_timestamp() {
            return Err(AuthorityError::Expired { ca: ca() });
        }
        let refused = |subject: &&CertificateSubject| !authority.permits(subject);
        match subjects.asked.iter().find(refused) {
            Some(subject) => Err(AuthorityError::NotPermitted {
                subject: subject.clone(),
                ca: ca(),
            }),
            None => Ok(authority),
        }
    }

    fn issue_for_found(
        &self,
        subjects: &CertificateSubjects,
        now: OffsetDateTime,
    ) -> Result<(), AuthorityError> {
        files::private_dir(self.ca.parent().unwrap_or(Path::new(".")))?;
        let names = subjects.found.iter();
        let names = names.filter(|subject| matches!(subject, CertificateSubject::Name(_)));
        // A detected public address may belong to another party tomorrow; private addresses are permitted anyway.
        let own: Vec<CertificateSubject> = subjects.asked.iter().chain(names).cloned().collect();
        let made = issue::authority(&own, now).map_err(AuthorityError::Making)?;
        files::write_private(&self.ca_key, made.key.as_bytes())?;
        files::write_private(&self.ca, made.cert.as_bytes())?;
        tracing::info!(ca = %self.ca.display(), "created a certificate authority for this server");
        Ok(())
    }

    /// The subjects of the certificate: the most important first, without duplicates.
    fn certificate_subjects(
        authority: &Certificate,
        subjects: &CertificateSubjects,
    ) -> Vec<CertificateSubject> {
        let mut wanted = Vec::new();
        let always = CertificateSubject::always();
        for subject in subjects.asked.iter().chain(&subjects.found).chain(&always) {
            if !authority.permits(subject) {
                tracing::info!(%subject, "the certificate does not cover this: the authority is limited to \
                                          other names; see gatewren cert show");
            } else if !wanted.contains(subject) {
                wanted.push(subject.clone());
            }
        }
        wanted
    }

    fn is_good(
        &self,
        authority: &Certificate,
        wanted: &[CertificateSubject],
        now: OffsetDateTime,
    ) -> bool {
        let Ok(certificate) = read(&self.cert) else {
            return false;
        };
        certificate.not_after > (now + RENEW_BEFORE).unix_timestamp()
            && certificate.not_before <= now.unix_timestamp()
            && wanted
                .iter()
                .all(|subject| certificate.subjects.contains(subject))
            && certificate.is_signed_by(authority)
            && self.key_fits()
    }

    fn key_fits(&self) -> bool {
        let read = |path| files::read_bounded(path, MAX_BYTES).ok();
        let cert = read(&self.cert).and_then(|pem| CertificateDer::from_pem_slice(&pem).ok());
        let key = read(&self.key).and_then(|pem| PrivateKeyDer::from_pem_slice(&pem).ok());
        let key = key.and_then(|key| any_supported_type(&key).ok());
        let both = cert.zip(key);
        both.is_some_and(|(cert, key)| CertifiedKey::new(vec![cert], key).keys_match().is_ok())
    }

    /// Issues a certificate for only the names of the server, with the same key; it is not stored.
    ///
    /// `BoringSSL` (used by Bun, and so by Claude Code) rejects a certificate with an address from an authority
    /// with address constraints, whatever name the client asked for.
    pub(super) fn by_name(
        &self,
        subjects: &[CertificateSubject],
        now: OffsetDateTime,
    ) -> Result<CertificateDer<'static>, AuthorityError> {
        let is_name =
            |subject: &&CertificateSubject| matches!(subject, CertificateSubject::Name(_));
        let names: Vec<CertificateSubject> = subjects.iter().filter(is_name).cloned().collect();
        let made = issue::part(&self.signer()?, &names, &text(&self.key)?, now);
        let made = made.map_err(AuthorityError::Making)?;
        Ok(made.der().clone())
    }

    fn signer(&self) -> Result<IssuedCertificate, AuthorityError> {
        let cert = text(&self.ca)?;
        let key = text(&self.ca_key)?;
        rcgen::KeyPair::from_pem(&key).map_err(|_| broken(&self.ca_key))?;
        Ok(IssuedCertificate { cert, key })
    }
}

fn read(path: &Path) -> Result<Certificate, AuthorityError> {
    let pem = text(path)?;
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok();
    let read = der.and_then(|der| Certificate::read(&der));
    read.ok_or_else(|| broken(path))
}

fn text(path: &Path) -> Result<String, AuthorityError> {
    match files::read_bounded(path, MAX_BYTES) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| broken(path)),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Err(broken(path)),
        Err(cause) => Err(cause.into()),
    }
}

fn broken(path: &Path) -> AuthorityError {
    AuthorityError::Broken {
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use gatewren_base::sys::Scratch;

    fn subjects(asked: &[&str], found: &[&str]) -> CertificateSubjects {
        let parsed = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        CertificateSubjects {
            asked: parsed(asked),
            found: parsed(found),
        }
    }

    fn now() -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    fn create_authority(scratch: &Scratch, subjects: &CertificateSubjects) -> AuthorityFiles {
        let authority = AuthorityFiles::at(&scratch.join("tls"));
        authority.ensure(subjects, now()).unwrap();
        authority
    }

    #[test]
    fn everything_it_makes_is_private() {
        let scratch = Scratch::new();
        let authority = create_authority(&scratch, &subjects(&["box.lan"], &[]));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&scratch.join("tls")), 0o700);
        for file in [&authority.ca_key, &authority.key] {
            assert_eq!(mode(file), 0o600, "{}", file.display());
        }
    }

    #[test]
    fn it_holds_for_what_is_asked_found_and_always() {
        let scratch = Scratch::new();
        let found = [
            "box",
            "192.168.1.10",
            "fd00::10",
            "203.0.113.9",
            "2001:db8::1",
        ];
        let authority = create_authority(
            &scratch,
            &subjects(&["nas.example.org", "198.51.100.7"], &found),
        );
        let names: Vec<String> = read(&authority.cert)
            .unwrap()
            .subjects
            .iter()
            .map(ToString::to_string)
            .collect();
        // Public addresses that were only detected are left out.
        assert_eq!(
            names,
            [
                "nas.example.org",
                "198.51.100.7",
                "box",
                "192.168.1.10",
                "fd00::10",
                "localhost",
                "127.0.0.1",
                "::1"
            ]
        );
    }

    #[test]
    fn it_is_made_once_and_renewed_when_it_must_be() {
        let scratch = Scratch::new();
        let first = subjects(&["box.lan"], &[]);
        let authority = create_authority(&scratch, &first);
        let bytes = |path: &Path| std::fs::read(path).unwrap();
        let (ca, cert) = (bytes(&authority.ca), bytes(&authority.cert));

        authority
            .ensure(&first, now() + Duration::days(59))
            .unwrap();
        assert_eq!(
            bytes(&authority.cert),
            cert,
            "31 days before its end it stays"
        );
        let later = now() + Duration::days(61);
        authority.ensure(&first, later).unwrap();
        let renewed = bytes(&authority.cert);
        assert_ne!(renewed, cert, "29 days before its end it is renewed");

        authority
            .ensure(&subjects(&["box.lan"], &["10.1.2.3"]), later)
            .unwrap();
        let wider = bytes(&authority.cert);
        assert_ne!(wider, renewed, "a new address needs a new certificate");
        authority.ensure(&first, later).unwrap();
        assert_eq!(bytes(&authority.cert), wider, "one address less needs none");

        let other = Scratch::new();
        std::fs::copy(create_authority(&other, &first).key, &authority.key).unwrap();
        authority.ensure(&first, later).unwrap();
        assert_ne!(
            bytes(&authority.cert),
            wider,
            "a key that does not fit is replaced"
        );
        assert!(authority.key_fits());
        assert_eq!(
            bytes(&authority.ca),
            ca,
            "the authority stays what clients trust"
        );
    }

    #[test]
    fn a_certificate_of_another_authority_is_replaced() {
        let scratch = Scratch::new();
        let other = Scratch::new();
        let wanted = subjects(&["box.lan"], &[]);
        let (ours, theirs) = (
            create_authority(&scratch, &wanted),
            create_authority(&other, &wanted),
        );
        std::fs::copy(&theirs.cert, &ours.cert).unwrap();
        std::fs::copy(&theirs.key, &ours.key).unwrap();
        ours.ensure(&wanted, now()).unwrap();
        let authority = read(&ours.ca).unwrap();
        assert!(read(&ours.cert).unwrap().is_signed_by(&authority));
    }

    #[test]
    fn it_signs_for_nothing_that_was_not_its_own_when_it_was_made() {
        let scratch = Scratch::new();
        let authority = create_authority(
            &scratch,
            &subjects(&["box.example.org"], &["nas", "attic.lan"]),
        );
        for good in [
            "box.example.org",
            "a.box.example.org",
            "nas.lan",
            "nas.home.arpa",
            "attic.local",
            "10.0.0.1",
            "fe80::1",
        ] {
            authority.ensure(&subjects(&[good], &[]), now()).unwrap();
        }
        for bad in [
            "example.org",
            "box.example.org.evil.com",
            "other",
            "8.8.8.8",
            "2001:db8::1",
            "xlan",
            "new.lan",
            "router.local",
            "box.lan",
            "lan",
            "evil.internal",
        ] {
            let error = authority.ensure(&subjects(&[bad], &[]), now()).unwrap_err();
            let error_text = error.to_string();
            assert!(
                error_text.contains(&format!("cannot sign for {bad}. Remove {bad} from")),
                "{error_text}"
            );
        }
    }

    #[test]
    fn what_is_lost_is_named_with_a_remedy() {
        let scratch = Scratch::new();
        let wanted = subjects(&[], &[]);
        let authority = create_authority(&scratch, &wanted);
        std::fs::remove_file(&authority.ca_key).unwrap();
        authority.ensure(&wanted, now()).unwrap();
        let soon = now() + Duration::days(80);
        let error_text = authority.ensure(&wanted, soon).unwrap_err().to_string();
        let directory = scratch.join("tls");
        assert_eq!(
            error_text,
            format!(
                "{0}/ca.key is missing or damaged; restore it from a backup, or remove the directory \
                 {0} to create a new authority; every client must then trust the new ca.pem",
                directory.display()
            )
        );
        std::fs::remove_file(&authority.ca).unwrap();
        let error_text = authority.ensure(&wanted, now()).unwrap_err().to_string();
        assert!(
            error_text.contains("ca.pem is missing or damaged"),
            "{error_text}"
        );
    }

    #[test]
    fn an_authority_whose_time_is_over_says_so() {
        let scratch = Scratch::new();
        let wanted = subjects(&[], &[]);
        let authority = create_authority(&scratch, &wanted);
        let late = now() + Duration::days(3651);
        let error_text = authority.ensure(&wanted, late).unwrap_err().to_string();
        assert!(
            error_text.contains("ca.pem has expired; remove the directory"),
            "{error_text}"
        );
    }
}
