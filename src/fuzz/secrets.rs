//! Text in the audit: contains no token and no password of ours, and has a limited size.

use serde_json::{Value, json};

use super::input::{parts, text};
use gatewren_base::telemetry::{redact, redact_text};

/// A token as issued by the owner, and a part of it that would be enough to identify it.
const TOKEN: &str = "gw_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdEabcdef";
const MIDDLE: &str = "KlMnOpQrStUvWxYz";

/// Input parts: a text, more text, JSON.
pub fn are_not_written_down(data: &[u8]) {
    let [before, after, value] = parts(data);
    let (Some(before), Some(after)) = (text(before), text(after)) else {
        return;
    };
    let said = format!("{before}{TOKEN}{after}");
    let written = redact_text(&said);
    // Unless the surrounding text contains it too.
    if !before.contains(MIDDLE) && !after.contains(MIDDLE) {
        assert!(!written.contains(MIDDLE), "{said:?} became {written:?}");
    }
    let key = "-----BEGIN PRIVATE KEY-----\nMIDDLE-OF-A-KEY\n-----END PRIVATE KEY-----";
    let said = format!("{before}\n{key}\n{after}");
    if !before.contains("MIDDLE-OF-A-KEY") && !after.contains("MIDDLE-OF-A-KEY") {
        let written = redact_text(&said);
        assert!(
            !written.contains("MIDDLE-OF-A-KEY"),
            "{said:?} became {written:?}"
        );
    }
    let once = redact_text(before).into_owned();
    assert_eq!(redact_text(&once), once, "{before:?}");
    for announced in [
        "password=",
        "--password ",
        "X-Api-Key: ",
        "Authorization: Bearer ",
    ] {
        let written = redact_text(&format!("x {announced}hunter2-hunter2 y")).into_owned();
        assert!(!written.contains("hunter2"), "{written:?}");
    }
    let Ok(value) = serde_json::from_slice::<Value>(value) else {
        return;
    };
    let kept = redact(&json!({ "said": value, "password": value, before: { "token": value } }));
    assert_eq!(redact(&kept), kept);
    let hidden = kept.get("password") == Some(&json!("[redacted]"));
    assert!(hidden || value.is_null() || value.is_boolean(), "{kept}");
}
