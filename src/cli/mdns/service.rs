//! The file with which avahi-daemon announces the server.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gatewren_base::sys::{files, process};
use gatewren_gate::http::Pin;
use gatewren_wire::protocol::Version;

/// The directory that avahi-daemon watches (avahi.service(5)).
pub const FOLDER: &str = "/etc/avahi/services";

/// The name of the file there.
const NAME: &str = "gatewren.service";

/// A line in each file of ours: other files are never overwritten or removed.
const MARK: &str = "By `gatewren mdns enable`; `gatewren mdns disable` takes it away.";

/// The maximum size of our file.
const MAX_BYTES: usize = 16 << 10;

/// The announced values: the server's port, and the pin of its certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnnouncedService {
    pub port: u16,
    pub pin: Pin,
}

impl AnnouncedService {
    /// The text records of both services (RFC 6763), each below 255 bytes.
    pub fn records(&self) -> [String; 4] {
        [
            "path=/mcp".to_owned(),
            format!("revisions={}", Version::ALL.map(Version::as_str).join(",")),
            format!("pin={}", self.pin),
            "tls=1".to_owned(),
        ]
    }

    /// The file in the format of avahi.service(5). Nothing in it needs escaping: digits, dates, base64.
    pub fn text(&self) -> String {
        let records = self.records();
        let records = records.map(|record| format!("    <txt-record>{record}</txt-record>\n"));
        let (port, records) = (self.port, records.concat());
        let service = |kind: &str| {
            format!(
                "  <service>\n    <type>{kind}</type>\n    <port>{port}</port>\n{records}  </service>\n"
            )
        };
        format!(
            "<?xml version=\"1.0\" standalone='no'?>\n<!DOCTYPE service-group SYSTEM \"avahi-service.dtd\">\n<!-- {MARK} \
             -->\n<service-group>\n  <name replace-wildcards=\"yes\">gatewren on %h</name>\n{}{}</service-group>\n",
            service("_https._tcp"),
            service("_mcp._tcp")
        )
    }
}

/// The file, whether it exists or not.
pub struct ServiceFile(PathBuf);

impl ServiceFile {
    pub fn in_folder(folder: &Path) -> Self {
        Self(folder.join(NAME))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the file; `None` if it does not exist. A file that another program wrote is an error.
    pub fn read(&self) -> Result<Option<String>, String> {
        let bytes = match files::read_bounded(&self.0, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(cause.to_string()),
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.contains(MARK) {
            return Ok(Some(text));
        }
        Err(format!(
            "{} was not written by this command, so it was left alone; remove it first",
            self.0.display()
        ))
    }

    /// Writes the file; returns whether it changed.
    pub fn write(&self, text: &str) -> Result<bool, String> {
        if self.read()?.is_some_and(|old| old == text) {
            return Ok(false);
        }
        let folder = self.0.parent().unwrap_or(Path::new("/"));
        files::public_dir(folder).map_err(|e| format!("{e}; run it as root"))?;
        files::write_public(&self.0, text.as_bytes())
            .map_err(|e| format!("{e}; run it as root"))?;
        Ok(true)
    }

    /// Removes the file; returns whether it existed.
    pub fn remove(&self) -> Result<bool, String> {
        if self.read()?.is_none() {
            return Ok(false);
        }
        fs::remove_file(&self.0).map_err(|cause| {
            format!(
                "cannot remove {}: {cause}; run it as root",
                self.0.display()
            )
        })?;
        Ok(true)
    }
}

/// Updates the pin if the server is announced; returns whether the pin changed.
pub fn follow_pin(pin: Pin) -> Result<bool, String> {
    let file = ServiceFile::in_folder(Path::new(FOLDER));
    // Files of other programs are not changed.
    let Ok(Some(text)) = file.read() else {
        return Ok(false);
    };
    let port = text
        .split_once("<port>")
        .and_then(|(_, rest)| rest.split_once('<'));
    let Some(port) = port.and_then(|(port, _)| port.parse().ok()) else {
        return Ok(false);
    };
    file.write(&AnnouncedService { port, pin }.text())
}

/// The state of avahi-daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvahiState {
    pub installed: bool,
    pub running: bool,
}

impl AvahiState {
    pub fn here() -> Self {
        let pid = fs::read_to_string("/run/avahi-daemon/pid").ok();
        let pid = pid.and_then(|pid| pid.trim().parse().ok());
        Self {
            installed: Path::new("/usr/sbin/avahi-daemon").exists(),
            running: pid.and_then(process).is_some(),
        }
    }

    /// What avahi-daemon does, or the command that makes it announce the server.
    pub fn words(self) -> &'static str {
        match self {
            Self { running: true, .. } => "avahi-daemon runs, and announces it",
            Self {
                installed: true, ..
            } => "avahi-daemon is not running; run: systemctl enable --now avahi-daemon",
            _ => {
                "not announced, because avahi-daemon is not installed; run: apt install avahi-daemon"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    fn service(port: u16) -> AnnouncedService {
        let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let pin = pin.parse().unwrap();
        AnnouncedService { port, pin }
    }

    #[test]
    fn records_are_as_long_as_they_may_be() {
        for record in service(8443).records() {
            assert!(record.len() <= 255, "{record}");
            assert!(
                record
                    .split_once('=')
                    .is_some_and(|(key, _)| key.len() <= 9)
            );
            assert!(!record.contains(['<', '>', '&', '"']), "{record}");
        }
    }

    #[test]
    fn a_file_of_somebody_elses_is_neither_written_over_nor_removed() {
        let scratch = Scratch::new();
        let file = ServiceFile::in_folder(&scratch.join("services"));
        assert_eq!(file.remove(), Ok(false));
        assert_eq!(file.write(&service(8443).text()), Ok(true));
        assert_eq!(
            file.write(&service(8443).text()),
            Ok(false),
            "it is the same"
        );
        assert_eq!(file.write(&service(9443).text()), Ok(true));
        assert_eq!(files::mode(file.path()).unwrap(), 0o644);
        assert_eq!(file.remove(), Ok(true));
        fs::write(file.path(), "<service-group/>").unwrap();
        for refused in [file.write("x"), file.remove()] {
            assert!(refused.unwrap_err().contains("left alone"));
        }
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "<service-group/>");
    }
}
