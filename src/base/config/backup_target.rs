//! Backup targets in the owner's settings.

use std::fmt;
use std::str::FromStr;

use super::shape::List;

/// The list of backup targets.
pub(super) const PLACES: List<BackupTargetSettings> = List {
    entry: |text| text.parse().ok(),
    like: "a name and a place, such as \"local: /srv/backup\", \"usb: disk LABEL=backup\", \"nas: smb //host/share \
           credentials=/root/file\", or \"safe: restic /srv/restic password=/root/file\"",
    may_be_empty: true,
};

/// The maximum length of an entry. A longer one is rejected.
const MAX_BYTES: usize = 1024;

/// A backup target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupTargetSettings {
    /// The name that clients use.
    pub name: String,
    /// Where the backups are stored.
    pub store: BackupStore,
}

/// The kinds of backup targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupStore {
    /// A directory, by its absolute path.
    Directory(String),
    /// A disk to mount: `LABEL=...`, `UUID=...` or a path below `/dev`.
    Disk(String),
    /// A share of another machine: `//HOST/SHARE`, and a file with the user and the password.
    Share {
        /// The share.
        share: String,
        /// The credentials file (mount.cifs(8), `credentials=`).
        credentials: String,
    },
    /// A restic repository.
    Restic {
        /// A directory, or a remote repository: `sftp:...`, `rest:...` or `s3:...`.
        repository: String,
        /// The file that contains the password in one line.
        password: String,
        /// The file with the environment variables for a remote server.
        credentials: Option<String>,
    },
}

/// The error for a text that is not a backup target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidBackupTarget;

impl FromStr for BackupTargetSettings {
    type Err = InvalidBackupTarget;

    /// Parses `NAME: /DIRECTORY`, `NAME: disk SOURCE`, `NAME: smb //HOST/SHARE credentials=FILE` or `NAME: restic
    /// REPOSITORY password=FILE [credentials=FILE]`.
    fn from_str(text: &str) -> Result<Self, InvalidBackupTarget> {
        let (name, rest) = text.split_once(':').ok_or(InvalidBackupTarget)?;
        // No part may contain characters that a shell or mount(8) interprets.
        let plain = |c: char| c.is_ascii_graphic() && !"\"'\\$`,;|&<>".contains(c);
        let good = text.len() <= MAX_BYTES && is_name(name);
        let words: Vec<&str> = rest.split_whitespace().collect();
        if !good || !words.iter().all(|word| word.chars().all(plain)) {
            return Err(InvalidBackupTarget);
        }
        let store = match words.as_slice() {
            [path] => BackupStore::Directory(normalize_path(path).ok_or(InvalidBackupTarget)?),
            ["disk", source] => BackupStore::Disk(disk(source).ok_or(InvalidBackupTarget)?),
            ["smb", share, file] if is_share(share) => BackupStore::Share {
                share: (*share).to_owned(),
                credentials: read_value(file, "credentials=").ok_or(InvalidBackupTarget)?,
            },
            ["restic", repository, password, rest @ ..] if rest.len() <= 1 => BackupStore::Restic {
                repository: check_repository(repository).ok_or(InvalidBackupTarget)?,
                password: read_value(password, "password=").ok_or(InvalidBackupTarget)?,
                credentials: match rest.first() {
                    Some(file) => {
                        Some(read_value(file, "credentials=").ok_or(InvalidBackupTarget)?)
                    }
                    None => None,
                },
            },
            _ => return Err(InvalidBackupTarget),
        };
        let name = name.to_owned();
        Ok(Self { name, store })
    }
}

/// Returns whether this is a valid name: 1 to 32 of `a-z 0-9 _ -`, beginning with a letter or a digit.
fn is_name(name: &str) -> bool {
    let small = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let begins_well = name.bytes().next().is_some_and(small);
    begins_well && name.len() <= 32 && name.bytes().all(|b| small(b) || b"_-".contains(&b))
}

/// Normalizes an absolute path. Returns `None` if it contains `.` or `..`, or is the root.
pub(super) fn normalize_path(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let good = !parts.is_empty() && parts.iter().all(|part| *part != "." && *part != "..");
    good.then(|| format!("/{}", parts.join("/")))
}

fn disk(source: &str) -> Option<String> {
    if source.starts_with("/dev/") {
        return normalize_path(source);
    }
    let (key, value) = source.split_once('=')?;
    let known = ["LABEL", "UUID", "PARTLABEL", "PARTUUID"].contains(&key);
    (known && !value.is_empty()).then(|| source.to_owned())
}

fn is_share(share: &str) -> bool {
    let rest = share.strip_prefix("//");
    let parts = rest.and_then(|rest| rest.split_once('/'));
    parts.is_some_and(|(host, share)| !host.is_empty() && !share.is_empty())
}

/// Checks a directory or a remote repository of a kind that restic supports itself. Rejects an address that
/// contains a password, which does not belong in this file, or that names a program to run.
fn check_repository(repository: &str) -> Option<String> {
    if repository.starts_with('/') {
        return normalize_path(repository);
    }
    let (kind, place) = repository.split_once(':')?;
    let user = place.rsplit_once('@').map_or("", |(user, _)| user);
    let user = user.rsplit_once("//").map_or(user, |(_, user)| user);
    let good = ["sftp", "rest", "s3"].contains(&kind) && !place.is_empty() && !user.contains(':');
    good.then(|| repository.to_owned())
}

fn read_value(word: &str, key: &str) -> Option<String> {
    normalize_path(word.strip_prefix(key)?)
}

impl fmt::Display for BackupTargetSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, store } = self;
        match store {
            BackupStore::Directory(path) => write!(f, "{name}: {path}"),
            BackupStore::Disk(source) => write!(f, "{name}: disk {source}"),
            BackupStore::Share { share, credentials } => {
                write!(f, "{name}: smb {share} credentials={credentials}")
            }
            BackupStore::Restic {
                repository,
                password,
                credentials,
            } => {
                write!(f, "{name}: restic {repository} password={password}")?;
                match credentials {
                    Some(file) => write!(f, " credentials={file}"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_name_and_what_it_stands_for() {
        for good in [
            "local: /srv/backup",
            "usb: disk LABEL=backup",
            "usb: disk /dev/disk/by-id/usb-X-0:0-part1",
            "nas: smb //nas/backups/box credentials=/etc/gatewren-nas",
            "safe: restic /srv/restic password=/root/restic",
            "far: restic sftp:me@nas:/srv/restic password=/root/restic",
            "far: restic sftp://me@nas:2222//srv password=/root/restic",
            "far: restic rest:https://nas:8000/box password=/root/restic credentials=/root/rest",
        ] {
            let place: BackupTargetSettings = good.parse().unwrap();
            assert_eq!(place.to_string(), good);
        }
        let bent: BackupTargetSettings = "a:  /srv//backup/ ".parse().unwrap();
        assert_eq!(bent.store, BackupStore::Directory("/srv/backup".to_owned()));
        for bad in [
            "",
            "local",
            "local:",
            "local: /",
            "local: srv",
            "local: /srv/../etc",
            "Local: /srv",
            "-a: /srv",
            "a: /b /c",
            "a: disk backup",
            "a: disk LABEL=",
            "a: disk ID=x",
            "a: disk LABEL=x,rw",
            "a: smb //nas credentials=/x",
            "a: smb //nas/x",
            "a: smb //nas/x credentials=x",
            "a: smb //nas/x password=x",
            "a: nfs nas:/x",
            "a: restic /srv/x",
            "a: restic srv password=/x",
            "a: restic / password=/x",
            "a: restic /srv/x password=x",
            "a: restic /srv/x password=/x credentials=/y z",
            "a: restic /srv/x credentials=/x",
            "a: restic rest:https://me:secret@nas/x password=/x",
            "a: restic rclone:far:x password=/x",
            "a: restic sftp: password=/x",
            "a: /b$(id)",
            "a: /b\n/c\"",
        ] {
            assert_eq!(
                bad.parse::<BackupTargetSettings>(),
                Err(InvalidBackupTarget),
                "{bad:?}"
            );
        }
    }
}
