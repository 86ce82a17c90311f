//! The authority as a configuration profile for Apple's systems.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use uuid::Builder;

/// Returns a profile with one root certificate (Apple, Configuration Profile Reference, `com.apple.security.root`).
/// The same certificate results in the same profile, so a second installation replaces the first.
pub fn profile(host: &str, der: &[u8]) -> String {
    let name = host.split(':').next().unwrap_or(host);
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || ".-".contains(*c))
        .collect();
    let (outer, inner) = (id(der, 0), id(der, 16));
    let data = STANDARD.encode(der);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<plist version=\"1.0\"><dict>
<key>PayloadType</key><string>Configuration</string>
<key>PayloadVersion</key><integer>1</integer>
<key>PayloadIdentifier</key><string>gatewren.authority.{outer}</string>
<key>PayloadUUID</key><string>{outer}</string>
<key>PayloadDisplayName</key><string>gatewren on {name}</string>
<key>PayloadDescription</key><string>Trusts the certificate authority of gatewren on {name}.</string>
<key>PayloadContent</key><array><dict>
<key>PayloadType</key><string>com.apple.security.root</string>
<key>PayloadVersion</key><integer>1</integer>
<key>PayloadIdentifier</key><string>gatewren.authority.{inner}</string>
<key>PayloadUUID</key><string>{inner}</string>
<key>PayloadDisplayName</key><string>gatewren authority on {name}</string>
<key>PayloadContent</key><data>{data}</data>
</dict></array>
</dict></plist>
"
    )
}

fn id(der: &[u8], from: usize) -> String {
    let hash = digest(&SHA256, der);
    let mut bytes = [0; 16];
    for (byte, of) in bytes.iter_mut().zip(hash.as_ref().iter().skip(from)) {
        *byte = *of;
    }
    Builder::from_custom_bytes(bytes)
        .into_uuid()
        .hyphenated()
        .to_string()
        .to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place_and_the_same_certificate_is_the_same_profile() {
        let made = profile("box.lan</string><x>:8443", b"der");
        assert!(made.contains("gatewren on box.lanstringx<"), "{made}");
        assert_eq!(profile("box.lan", b"der"), profile("box.lan", b"der"));
        assert_ne!(profile("box.lan", b"der"), profile("box.lan", b"other"));
    }
}
