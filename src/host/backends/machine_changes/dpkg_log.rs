//! Parses dpkg's log (`/var/log/dpkg.log`): installed, upgraded and removed packages.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;

use gatewren_base::sys::{LocalZone, neutralise};

/// The most bytes of a decompressed log: a small file may expand to a large one.
const MAX_LOG_BYTES: u64 = 8 << 20;

/// The longest name or version that is shown, in characters.
const WORD_CHARS: usize = 80;

/// What happened to one package in a period: its version before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageChange {
    /// Its name, without the architecture.
    pub name: String,
    /// The version before; absent if it was not installed.
    pub from: Option<String>,
    /// The version after; absent if it was removed.
    pub to: Option<String>,
    /// When it changed last, in milliseconds since 1970.
    pub at_ms: u64,
}

/// What a log has about a period.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DpkgLogPart {
    /// Each package once, sorted by name. A package that is as it was is left out.
    pub changes: Vec<PackageChange>,
    /// The time of the first line, of any kind.
    pub begins_ms: Option<u64>,
}

/// Decompresses a log that logrotate has compressed with gzip; the part beyond [`MAX_LOG_BYTES`] is left out. `None` if it
/// is damaged before that.
pub fn decompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut log = Vec::new();
    let read = GzDecoder::new(bytes)
        .take(MAX_LOG_BYTES)
        .read_to_end(&mut log);
    read.ok().map(|_| log)
}

/// Parses a log. dpkg writes local times.
pub fn dpkg_changes(bytes: &[u8], zone: &LocalZone, since_ms: u64) -> DpkgLogPart {
    let text = String::from_utf8_lossy(bytes);
    let mut begins_ms = None;
    let mut packages: BTreeMap<String, PackageChange> = BTreeMap::new();
    for line in text.lines() {
        let Some((time, action)) = line.split_at_checked("2026-07-28 09:30:00".len()) else {
            continue;
        };
        let Some(at_ms) = zone.ms(time) else { continue };
        begins_ms.get_or_insert(at_ms);
        if at_ms < since_ms {
            continue;
        }
        let Some(change) = change(action, at_ms) else {
            continue;
        };
        match packages.get_mut(&change.name) {
            Some(known) => {
                known.to = change.to;
                known.at_ms = at_ms;
            }
            None => {
                packages.insert(change.name.clone(), change);
            }
        }
    }
    let changes = packages.into_values().filter(|one| one.from != one.to);
    DpkgLogPart {
        changes: changes.collect(),
        begins_ms,
    }
}

/// `upgrade libc6:amd64 2.36-9 2.36-10`; other lines are states and triggers.
fn change(action: &str, at_ms: u64) -> Option<PackageChange> {
    let mut words = action.split_whitespace();
    let (action, package) = (words.next()?, words.next()?);
    if !["install", "upgrade", "remove", "purge"].contains(&action) {
        return None;
    }
    let mut version = || {
        let version = words.next()?;
        (version != "<none>").then(|| word(version))
    };
    let (from, to) = (version(), version());
    let removes = matches!(action, "remove" | "purge");
    Some(PackageChange {
        name: word(package.split(':').next()?),
        from,
        to: to.filter(|_| !removes),
        at_ms,
    })
}

fn word(text: &str) -> String {
    let short: String = text.chars().take(WORD_CHARS).collect();
    neutralise(&short).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const LOG: &str = "2026-07-27 08:00:00 upgrade early:amd64 1 2
2026-07-28 09:30:00 startup archives unpack
2026-07-28 09:30:01 upgrade libc6:amd64 2.36-9 2.36-10
2026-07-28 09:30:01 status half-configured libc6:amd64 2.36-9
2026-07-28 09:30:02 install new:all <none> 1.0
2026-07-28 09:30:03 remove old:amd64 3 <none>
2026-07-28 09:30:04 purge old:amd64 3 <none>
2026-07-28 09:31:00 upgrade libc6:amd64 2.36-10 2.36-11
2026-07-28 09:32:00 install passing:all <none> 1
2026-07-28 09:33:00 remove passing:all 1 <none>
cut off
";

    #[test]
    fn each_package_is_named_once_with_the_versions_before_and_after() {
        let since = LocalZone::utc().ms("2026-07-28 00:00:00").unwrap();
        let part = dpkg_changes(LOG.as_bytes(), &LocalZone::utc(), since);
        let words: Vec<_> = part
            .changes
            .iter()
            .map(|one| (one.name.as_str(), one.from.as_deref(), one.to.as_deref()))
            .collect();
        assert_eq!(
            words,
            [
                ("libc6", Some("2.36-9"), Some("2.36-11")),
                ("new", None, Some("1.0")),
                ("old", Some("3"), None),
            ]
        );
        assert_eq!(part.begins_ms, LocalZone::utc().ms("2026-07-27 08:00:00"));
    }

    #[test]
    fn a_compressed_log_is_read_and_bounded() {
        let compress = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(
            decompressed(&compress(LOG.as_bytes())).unwrap(),
            LOG.as_bytes()
        );
        let large = compress(&vec![b'a'; 20 << 20]);
        assert!(large.len() < 100_000);
        assert_eq!(decompressed(&large).unwrap().len() as u64, MAX_LOG_BYTES);
        assert_eq!(decompressed(b"no gzip"), None);
        let whole = compress(LOG.as_bytes());
        assert_eq!(decompressed(&whole[..whole.len() / 2]), None);
    }

    #[test]
    fn any_bytes_are_read() {
        for bytes in [
            b"".as_slice(),
            b"\xff\xfe",
            b"2026-07-28 09:30:00",
            b"2026-07-28 09:30:00 install",
        ] {
            assert_eq!(dpkg_changes(bytes, &LocalZone::utc(), 0).changes, []);
        }
    }
}
