//! The authorities that this machine trusts.

use rustls::RootCertStore;

/// Loads the authorities that the machine trusts; not cached, because it is rarely needed.
#[cfg(not(target_os = "macos"))]
pub(super) fn trusted() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Loads the authorities that the machine trusts: those in the file that `SSL_CERT_FILE` names, or in macOS's own. The
/// keychain is not read: that needs Apple's frameworks.
#[cfg(target_os = "macos")]
pub(super) fn trusted() -> RootCertStore {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    let file = std::env::var_os("SSL_CERT_FILE").unwrap_or_else(|| "/etc/ssl/cert.pem".into());
    let mut roots = RootCertStore::empty();
    if let Ok(found) = CertificateDer::pem_file_iter(file) {
        roots.add_parsable_certificates(found.flatten());
    }
    roots
}
