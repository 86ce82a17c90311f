//! Anchors of the audit from the helper's log: read from the journal, or from an export of it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use gatewren_base::sys::is_root;
use gatewren_store::vault::Anchors;

/// The helper's unit.
const UNIT: &str = "gatewren-helper.service";

/// The field with the number of the audit's last row.
const SEQ: &str = "GATEWREN_AUDIT_SEQ";

/// The field with that row's hash.
const SHA256: &str = "GATEWREN_AUDIT_SHA256";

/// The maximum length of a log line, in bytes; a longer one is an error.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Anchors to compare the audit with.
pub enum GatheredAnchors {
    /// Anchors from the helper's log.
    Anchors(Anchors),
    /// None; the text gives the reason and the remedy.
    Nothing(&'static str),
}

/// Reads the lines of a file that `journalctl -o json` wrote.
pub fn of_file(file: &Path) -> Result<GatheredAnchors, String> {
    let opened = File::open(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let read = read(BufReader::new(opened)).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(GatheredAnchors::Anchors(read))
}

/// Reads the helper's own lines in the journal, as far back as it reaches. Only root is sure to see all of them.
pub fn of_journal() -> Result<GatheredAnchors, String> {
    if !is_root() {
        return Ok(GatheredAnchors::Nothing(
            "run this as root to compare the rows with the helper's journal",
        ));
    }
    let unit = format!("_SYSTEMD_UNIT={UNIT}");
    let fields = format!("--output-fields={SEQ},{SHA256},_UID,_SYSTEMD_UNIT");
    let child = Command::new("journalctl")
        .args(["--no-pager", "--quiet", "--output=json", &fields, &unit])
        // Only root's lines: a command that the helper runs as another user can write to the journal too.
        .arg("_UID=0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return Ok(GatheredAnchors::Nothing(
            "journalctl was not found; give an export of the helper's log with --anchors",
        ));
    };
    let anchors = match child.stdout.take() {
        Some(output) => read(BufReader::new(output)),
        None => Ok(Anchors::default()),
    };
    // Kills journalctl if its output was not read to the end.
    let _ = child.kill();
    let _ = child.wait();
    let anchors = anchors.map_err(|e| format!("cannot read the journal of {UNIT}: {e}"))?;
    if anchors.is_empty() {
        return Ok(GatheredAnchors::Nothing(
            "the journal has no line from the helper that names an audit row",
        ));
    }
    Ok(GatheredAnchors::Anchors(anchors))
}

fn read(mut lines: impl BufRead) -> io::Result<Anchors> {
    let mut anchors = Anchors::default();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let taken = lines
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)?;
        if taken == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let fields: Value = serde_json::from_slice(&line)
            .map_err(|_| io::Error::other(format!("line {number} is not JSON from journalctl")))?;
        if let Some(anchor) = anchor(&fields) {
            anchors.add(anchor.seq, anchor.sha256, anchor.at_ms);
        }
    }
    Ok(anchors)
}

/// The row that a line names.
#[derive(Debug, PartialEq, Eq)]
struct Anchor<'a> {
    seq: u64,
    sha256: &'a str,
    at_ms: u64,
}

/// The anchor in a line; none if the line has none, or another unit or user wrote it.
fn anchor(fields: &Value) -> Option<Anchor<'_>> {
    let text = |name: &str| fields.get(name)?.as_str();
    let is = |name: &str, expected: &str| fields.get(name).is_none_or(|field| field == expected);
    if !is("_SYSTEMD_UNIT", UNIT) || !is("_UID", "0") {
        return None;
    }
    let at_us: u64 = text("__REALTIME_TIMESTAMP").and_then(|text| text.parse().ok())?;
    Some(Anchor {
        seq: text(SEQ)?.parse().ok()?,
        sha256: text(SHA256)?,
        at_ms: at_us / 1000,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_helpers_own_lines_count() {
        let line = json!({ "__REALTIME_TIMESTAMP": "1700000000123456", "_UID": "0",
            "_SYSTEMD_UNIT": UNIT, SEQ: "12", SHA256: "ab" });
        let expected = Anchor {
            seq: 12,
            sha256: "ab",
            at_ms: 1_700_000_000_123,
        };
        assert_eq!(anchor(&line), Some(expected));
        for (field, other) in [
            ("_UID", json!("1000")),
            ("_SYSTEMD_UNIT", json!("gatewren.service")),
            (SEQ, json!("-1")),
            (SHA256, json!([1, 2])),
            ("__REALTIME_TIMESTAMP", json!(null)),
        ] {
            let mut line = line.clone();
            line[field] = other;
            assert_eq!(anchor(&line), None, "{field}");
        }
        assert_eq!(anchor(&json!({ "MESSAGE": "operation" })), None);
    }

    #[test]
    fn what_is_no_export_of_a_journal_is_refused() {
        let wrong = read("{}\n\nRow 7 is good\n".as_bytes()).unwrap_err();
        assert!(wrong.to_string().starts_with("line 3 "), "{wrong}");
        let long = vec![b' '; 3 << 20];
        assert!(read(&long[..]).unwrap().is_empty());
    }
}
