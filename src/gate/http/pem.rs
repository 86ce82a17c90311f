//! Encodes bytes as a PEM section (RFC 7468).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Characters per line.
const LINE: usize = 64;

/// Encodes one section, with its begin and end lines.
pub(super) fn section(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    let encoded = STANDARD.encode(der);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(LINE.min(rest.len()));
        text.push_str(line);
        text.push('\n');
        rest = more;
    }
    text + "-----END " + label + "-----\n"
}
