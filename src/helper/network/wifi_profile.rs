//! A wireless network as a `NetworkManager` profile.
//!
//! Name and password go from file to file and never through a program's arguments.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

use gatewren_base::sys::files::{read_bounded, write_private};
use gatewren_base::sys::{Secret, Zeroizing};
use gatewren_wire::operations::{OperationRefusal, Ssid};

use crate::backup::targets::private;

/// The directory of the profiles (nm-settings-keyfile(5)).
const PROFILES: &str = "/etc/NetworkManager/system-connections";

/// The most bytes of a password file that are read.
const PASSWORD_BYTES: usize = 128;

/// The most bytes of one of gatewren's profiles that are read.
const PROFILE_BYTES: usize = 16 * 1024;

/// The lengths of a password (IEEE 802.11, J.4). A value one digit longer is the key itself.
const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 8..=63;

/// The number of hexadecimal digits of a key.
const KEY_DIGITS: usize = 64;

/// How the host authenticates to a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WifiAuthentication {
    /// An open network.
    Nothing,
    /// No authentication, but encryption against eavesdropping.
    Encrypted,
    /// A password, with this key management.
    Password(&'static str, Secret),
}

/// Returns how to authenticate to a network with these security protocols.
///
/// # Errors
/// States why the network cannot be joined.
pub fn choose_authentication(
    security: &str,
    password: Option<Secret>,
) -> Result<WifiAuthentication, OperationRefusal> {
    let words: Vec<&str> = security.split(' ').collect();
    let has = |word: &str| words.contains(&word);
    let key_management = match (has("802.1X"), has("WPA1") || has("WPA2"), has("WPA3")) {
        (true, ..) => {
            return Err(OperationRefusal::failed(
                "this network needs more than a password (802.1X); the owner can join it on the server, with nmtui or \
                 nmcli",
            ));
        }
        (_, true, _) => "wpa-psk",
        (_, _, true) => "sae",
        _ if has("WEP") => {
            return Err(OperationRefusal::failed(
                "this network uses WEP, which is insecure; switch it to WPA2 or WPA3",
            ));
        }
        _ if password.is_some() && !asks_for_more(security) => {
            return Err(OperationRefusal::failed(
                "this network is open, but the owner's file has a password for this name; it may be a fake, so the \
                 host does not join it",
            ));
        }
        _ if security.is_empty() => return Ok(WifiAuthentication::Nothing),
        _ if !asks_for_more(security) => return Ok(WifiAuthentication::Encrypted),
        // An unknown protocol cannot be used.
        _ => {
            let words = format!("this network needs {security}, which is not supported here");
            return Err(OperationRefusal::failed(words));
        }
    };
    password.map(|password| WifiAuthentication::Password(key_management, password)).ok_or_else(|| {
        OperationRefusal::failed(
            "this network needs a password, which is never an argument: the owner writes it to a file that only root \
             can read, and adds network and file to wifi_networks in /etc/gatewren/helper.toml",
        )
    })
}

/// Returns whether the network requires more than nothing, or more than a key that anyone can get.
fn asks_for_more(security: &str) -> bool {
    !matches!(security, "" | "OWE" | "OWE-TM")
}

/// Reads the password from a file of the owner.
///
/// # Errors
/// States what is wrong with the file, without its contents.
pub fn password(path: &str) -> Result<Secret, OperationRefusal> {
    private(path)?;
    let bytes = read_bounded(Path::new(path), PASSWORD_BYTES);
    let bytes = bytes.map_err(|e| OperationRefusal::failed(e.to_string()))?;
    let text = Zeroizing::new(String::from_utf8(bytes).unwrap_or_default());
    let word = text.strip_suffix('\n').unwrap_or(&text);
    let word = word.strip_suffix('\r').unwrap_or(word);
    let plain = word.bytes().all(|b| (0x20..0x7f).contains(&b));
    let is_key = word.len() == KEY_DIGITS && word.bytes().all(|b| b.is_ascii_hexdigit());
    if is_key || plain && PASSWORD_CHARS.contains(&word.len()) {
        return Ok(Secret::new(word));
    }
    Err(OperationRefusal::failed(format!(
        "{path} must have one line, the password of 8 to 63 ASCII characters"
    )))
}

/// A network that gatewren joined.
#[derive(Debug)]
pub struct WifiProfile {
    /// `NetworkManager`'s id of the profile: always the same for the same network.
    pub uuid: String,
    path: PathBuf,
    ssid: Ssid,
}

impl WifiProfile {
    /// Returns the profile of a network.
    pub fn of(ssid: &Ssid) -> Self {
        Self::in_folder(Path::new(PROFILES), ssid)
    }

    fn in_folder(folder: &Path, ssid: &Ssid) -> Self {
        let uuid = uuid(ssid.as_str());
        let path = folder.join(format!("gatewren-{uuid}.nmconnection"));
        let ssid = ssid.clone();
        Self { uuid, path, ssid }
    }

    /// Its file.
    pub fn file(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the file's current contents; `None` if it does not exist.
    pub fn read_contents(&self) -> Result<Option<Zeroizing<Vec<u8>>>, OperationRefusal> {
        if !self.path.exists() {
            return Ok(None);
        }
        let bytes = read_bounded(&self.path, PROFILE_BYTES);
        bytes
            .map(|bytes| Some(Zeroizing::new(bytes)))
            .map_err(|e| OperationRefusal::failed(e.to_string()))
    }

    /// Writes the file atomically, readable only by root.
    pub fn write(&self, proof: &WifiAuthentication) -> Result<(), OperationRefusal> {
        self.put_back(Some(self.text(proof).as_bytes()))
    }

    /// Restores the file's previous contents.
    pub fn put_back(&self, kept: Option<&[u8]>) -> Result<(), OperationRefusal> {
        let done = match kept {
            Some(bytes) => write_private(&self.path, bytes).map_err(|e| e.to_string()),
            None => match fs::remove_file(&self.path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e.to_string()),
                _ => Ok(()),
            },
        };
        done.map_err(OperationRefusal::failed)
    }

    /// Returns the contents of the file (nm-settings-keyfile(5)). The network's name is written as numbers, so that
    /// no byte of it has a special meaning.
    fn text(&self, proof: &WifiAuthentication) -> Zeroizing<String> {
        let uuid = &self.uuid;
        let bytes: Vec<String> = self
            .ssid
            .as_str()
            .bytes()
            .map(|b| format!("{b};"))
            .collect();
        let ssid = bytes.concat();
        let security = Zeroizing::new(match proof {
            WifiAuthentication::Nothing => String::new(),
            WifiAuthentication::Encrypted => "\n[wifi-security]\nkey-mgmt=owe\n".to_owned(),
            WifiAuthentication::Password(key_management, password) => {
                let word = Zeroizing::new(escape_value(password.expose()));
                let word = word.as_str();
                format!("\n[wifi-security]\nkey-mgmt={key_management}\npsk={word}\n")
            }
        });
        let security = security.as_str();
        Zeroizing::new(format!(
            "[connection]\nid=gatewren-{uuid}\nuuid={uuid}\ntype=wifi\n\n[wifi]\nmode=infrastructure\nssid={ssid}\n\
             {security}\n[ipv4]\nmethod=auto\n\n[ipv6]\nmethod=auto\n"
        ))
    }
}

/// Escapes a value: leading spaces would be lost.
fn escape_value(word: &str) -> String {
    let word = Zeroizing::new(word.replace('\\', "\\\\"));
    let spaces = word.len() - word.trim_start_matches(' ').len();
    format!("{}{}", "\\s".repeat(spaces), word.trim_start_matches(' '))
}

/// A name-based UUID with custom derivation, version 8 (RFC 9562, 5.8).
fn uuid(ssid: &str) -> String {
    let digest = digest(&SHA256, format!("gatewren wifi {ssid}").as_bytes());
    let number = digest
        .as_ref()
        .iter()
        .take(16)
        .fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let version = number & !(0xf << 76) | 0x8 << 76;
    let number = version & !(0x3 << 62) | 0x2 << 62;
    let hex = format!("{number:032x}");
    let mut rest = hex.as_str();
    let groups = [8, 4, 4, 4, 12].map(|length| {
        let (group, after) = rest.split_at_checked(length).unwrap_or_default();
        rest = after;
        group
    });
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::wifi_profile::*;
    use gatewren_base::sys::Scratch;

    fn ssid(name: &str) -> Ssid {
        name.to_owned().try_into().unwrap()
    }

    #[test]
    fn a_profile_has_a_name_of_its_own_and_no_byte_that_means_anything() {
        let scratch = Scratch::new();
        let profile = WifiProfile::in_folder(scratch.path(), &ssid("a;[x]\\"));
        assert_eq!(profile.uuid.len(), 36);
        assert_eq!(profile.uuid.as_bytes()[14], b'8');
        assert_ne!(profile.uuid, uuid("b"));
        assert_eq!(profile.read_contents().unwrap(), None);
        profile.write(&WifiAuthentication::Nothing).unwrap();
        let text = String::from_utf8(profile.read_contents().unwrap().unwrap().to_vec()).unwrap();
        assert!(text.contains("\nssid=97;59;91;120;93;92;\n"), "{text}");
        assert!(!text.contains("wifi-security"), "{text}");
        let mode = fs::metadata(&profile.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let secret = Secret::new("  a\\b=c#");
        let proof = WifiAuthentication::Password("sae", secret);
        assert!(!format!("{proof:?}").contains('#'));
        profile.write(&proof).unwrap();
        let text = String::from_utf8(profile.read_contents().unwrap().unwrap().to_vec()).unwrap();
        assert!(
            text.contains("\nkey-mgmt=sae\npsk=\\s\\sa\\\\b=c#\n"),
            "{text}"
        );
        profile.put_back(None).unwrap();
        profile.put_back(None).unwrap();
        assert!(!profile.path.exists());
    }

    #[test]
    fn only_what_is_understood_is_joined() {
        let secret = || Some(Secret::new("12345678"));
        let key_management = |security: &str| match choose_authentication(security, secret()) {
            Ok(WifiAuthentication::Password(key_management, _)) => key_management,
            _ => "no",
        };
        assert_eq!(
            choose_authentication("", None),
            Ok(WifiAuthentication::Nothing)
        );
        assert_eq!(
            choose_authentication("OWE", None),
            Ok(WifiAuthentication::Encrypted)
        );
        let cases = [
            ("", "no"),
            ("OWE", "no"),
            ("WPA2", "wpa-psk"),
            ("WPA1 WPA2", "wpa-psk"),
            ("WPA2 WPA3", "wpa-psk"),
            ("WPA3", "sae"),
            ("WEP", "no"),
            ("WPA2 802.1X", "no"),
            ("WPA9", "no"),
            ("~", "no"),
        ];
        for (security, expected) in cases {
            assert_eq!(key_management(security), expected, "{security}");
        }
        let none = choose_authentication("WPA2", None).unwrap_err();
        assert!(none.message.contains("wifi_networks"), "{none}");
    }

    #[test]
    fn a_password_is_one_line_for_root_alone() {
        let scratch = Scratch::new();
        let path = scratch.join("word");
        let read = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            password(path.to_str().unwrap())
        };
        for good in [
            "12345678",
            "12345678\n",
            "12345678\r\n",
            &"f".repeat(64),
            &"x".repeat(63),
        ] {
            let word = read(good, 0o600).unwrap();
            assert_eq!(word.expose(), good.trim_end());
        }
        for bad in [
            "",
            "1234567\n",
            "12345678\n\n",
            "1234\n5678\n",
            "12345678\u{e9}",
            &"x".repeat(64),
            &"x".repeat(200),
        ] {
            let refused = read(bad, 0o600).unwrap_err();
            assert!(
                bad.is_empty() || !refused.message.contains(bad.trim_end()),
                "{refused}"
            );
        }
        assert!(
            read("12345678", 0o640)
                .unwrap_err()
                .message
                .contains("chmod 600")
        );
    }
}
