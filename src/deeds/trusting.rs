//! How each system is told to trust the box's certificate authority, for terminal and page alike.

/// The name under which the certificate is saved where the client is.
pub const AUTHORITY_PEM: &str = "gatewren-ca.pem";

/// A system or a kind of client.
pub struct Trusting {
    /// What a person types to name it.
    pub key: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// What is done there.
    pub how: How,
}

/// What is done to have it trust.
pub enum How {
    /// A line for a shell there, beside the file [`AUTHORITY_PEM`].
    Line(&'static str),
    /// By hand, in words.
    Words(&'static str),
}

/// All of them.
#[rustfmt::skip]
pub const SYSTEMS: [Trusting; 10] = [
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

const fn line(key: &'static str, name: &'static str, line: &'static str) -> Trusting {
    let how = How::Line(line);
    Trusting { key, name, how }
}

const fn words(key: &'static str, name: &'static str, words: &'static str) -> Trusting {
    let how = How::Words(words);
    Trusting { key, name, how }
}
