//! Moves damaged databases aside for inspection and limits how many are kept.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tracing::warn;

/// The most damaged databases that are kept; above this the oldest is removed. A failing disk may damage one at
/// every start.
const MAX_KEPT: usize = 3;

/// The files that SQLite keeps beside a database. They are moved first: after a crash in between, no log may remain
/// that a new database would take as its own.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// Separates the name of a database from the time when it was moved aside.
const MARK: &str = ".damaged-";

/// Moves a damaged database and the files that SQLite keeps beside it out of the way. Returns the new path.
pub fn move_aside(path: &Path, now_ms: u64) -> io::Result<PathBuf> {
    let aside = with(path, &format!("{MARK}{now_ms}"));
    for end in COMPANIONS {
        match fs::rename(with(path, end), with(&aside, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(path, &aside)?;
    remove_old(path);
    Ok(aside)
}

/// Removes the oldest databases that were moved aside when there are too many. Files that cannot be removed stay.
fn remove_old(path: &Path) {
    let mut kept = moved_aside(path).unwrap_or_default();
    // The times have the same number of digits for the next two hundred years, so the names sort by time.
    kept.sort();
    let surplus = kept.len().saturating_sub(MAX_KEPT);
    for old in kept.drain(..surplus) {
        warn!(path = %old.display(), "an old damaged database is removed to save space");
        for end in ["", "-wal", "-shm"] {
            // Best effort: the file may be gone already, and nothing depends on its removal.
            let _ = fs::remove_file(with(&old, end));
        }
    }
}

fn moved_aside(path: &Path) -> io::Result<Vec<PathBuf>> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Vec::new());
    };
    let start = with(Path::new(name), MARK).into_os_string();
    let is_one = |name: &OsString| {
        let time = name
            .as_encoded_bytes()
            .strip_prefix(start.as_encoded_bytes());
        time.is_some_and(|time| !time.is_empty() && time.iter().all(u8::is_ascii_digit))
    };
    let names = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name()));
    let names = names.collect::<io::Result<Vec<_>>>()?;
    let ours = names.into_iter().filter(is_one);
    Ok(ours.map(|name| directory.join(name)).collect())
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::Scratch;

    use super::*;

    #[test]
    fn it_goes_with_its_companions_and_the_newest_three_stay() {
        let scratch = Scratch::new();
        let path = scratch.join("state.db");
        fs::write(scratch.join("state.db.damaged-notes"), "mine").unwrap();
        for now in 1_795_000_000_001..=1_795_000_000_005 {
            for end in ["", "-wal"] {
                fs::write(with(&path, end), "broken").unwrap();
            }
            let aside = move_aside(&path, now).unwrap();
            assert!(aside.exists() && with(&aside, "-wal").exists());
            assert!(!path.exists() && !with(&path, "-wal").exists());
        }
        let left = fs::read_dir(scratch.path()).unwrap();
        let left: BTreeSet<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        let stamps = (1_795_000_000_003_u64..=1_795_000_000_005)
            .flat_map(|n| ["", "-wal"].map(|end| format!("state.db.damaged-{n}{end}")));
        let wanted = stamps.chain(["state.db.damaged-notes".to_owned()]);
        assert_eq!(left, wanted.map(OsString::from).collect());
    }
}
