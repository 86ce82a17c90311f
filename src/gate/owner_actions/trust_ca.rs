//! How to make each system trust the host's certificate authority, for terminal and page.

/// The file name of the certificate on the client's machine.
pub const AUTHORITY_PEM: &str = "gatewren-ca.pem";

/// A system or a kind of client.
pub struct TrustGuide {
    /// Its name on the command line.
    pub key: &'static str,
    /// Its usual name.
    pub name: &'static str,
    /// What to do there.
    pub how: TrustSteps,
}

/// How to make a system trust the authority.
pub enum TrustSteps {
    /// A shell line to run there, next to the file [`AUTHORITY_PEM`].
    Line(&'static str),
    /// Manual steps, in words.
    Words(&'static str),
}

/// All supported systems.
#[rustfmt::skip]
pub const SYSTEMS: [TrustGuide; 10] = [
    line("debian",  "Debian, Ubuntu", "sudo cp gatewren-ca.pem /usr/local/share/ca-certificates/gatewren.crt && sudo update-ca-certificates"),
    line("fedora",  "Fedora, Arch", "sudo trust anchor gatewren-ca.pem"),
    line("macos",   "macOS", "sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain gatewren-ca.pem"),
    line("windows", "Windows (as administrator)", "certutil -addstore -f Root gatewren-ca.pem"),
    line("node",    "Node.js clients", "export NODE_EXTRA_CA_CERTS=$PWD/gatewren-ca.pem"),
    line("python",  "Python clients", "export SSL_CERT_FILE=$PWD/gatewren-ca.pem"),
    line("codex",   "Codex", "export CODEX_CA_CERTIFICATE=$PWD/gatewren-ca.pem"),
    words("android", "Android", "open the DER file, then Settings, Security, Install a certificate, CA certificate."),
    words("iphone", "iPhone, iPad", "open the .mobileconfig, install the profile in Settings, then switch it on in General, About, Certificate Trust Settings."),
    words("firefox", "Firefox", "Settings, Privacy & Security, View Certificates, Authorities, Import."),
];

const fn line(key: &'static str, name: &'static str, line: &'static str) -> TrustGuide {
    let how = TrustSteps::Line(line);
    TrustGuide { key, name, how }
}

const fn words(key: &'static str, name: &'static str, words: &'static str) -> TrustGuide {
    let how = TrustSteps::Words(words);
    TrustGuide { key, name, how }
}
