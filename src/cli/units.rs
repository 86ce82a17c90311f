//! The state of our units in systemd.

use std::collections::HashMap;
use std::path::Path;

use super::console::program::read_output;

/// The units of the package: the front, its socket, the helper's socket, the helper.
pub const UNITS: [&str; 4] = [
    "gatewren.service",
    "gatewren.socket",
    "gatewren-helper.socket",
    "gatewren-helper.service",
];

/// The properties of a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitState(HashMap<String, String>);

/// Whether systemd is the init of this host.
pub fn systemd_runs() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

impl UnitState {
    /// Asks systemd; `None` if it does not answer.
    pub async fn of(unit: &str) -> Option<Self> {
        const ASKED: &str = "--property=LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result,StatusText,\
                             ActiveEnterTimestamp,MainPID,Listen";
        let text = read_output("systemctl", &["show", "--no-pager", ASKED, unit]).await?;
        Some(Self::read(&text))
    }

    fn read(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        // `Listen` appears once for each socket.
        let mut read: HashMap<String, String> = HashMap::new();
        for (key, value) in lines {
            let known = read.entry(key.to_owned()).or_default();
            if !known.is_empty() {
                known.push('\n');
            }
            known.push_str(value);
        }
        Self(read)
    }

    /// The value of a property; empty if it is missing.
    pub fn get(&self, property: &str) -> &str {
        self.0.get(property).map_or("", String::as_str)
    }

    /// Whether the unit is installed.
    pub fn is_installed(&self) -> bool {
        self.get("LoadState") == "loaded"
    }

    /// Whether the unit is active: it runs, or listens.
    pub fn is_active(&self) -> bool {
        self.get("ActiveState") == "active"
    }

    /// The ports that a socket unit listens on.
    pub fn ports(&self) -> Vec<u16> {
        let words = self.get("Listen").split_whitespace();
        words
            .filter_map(|word| word.rsplit(':').next()?.parse().ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_tells_its_ports() {
        let unit = UnitState::read(
            "LoadState=loaded\nActiveState=active\nListen=[::]:8443 (Stream)\nListen=192.168.1.4:9443 (Stream)\n",
        );
        assert!(unit.is_installed() && unit.is_active());
        assert_eq!(unit.ports(), [8443, 9443]);
        assert!(UnitState::read("LoadState=not-found\n").ports().is_empty());
    }
}
