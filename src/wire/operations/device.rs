//! Names of disks, tunnels and pools that are safe as arguments.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kernel's name of a disk or partition, such as `sda`, `nvme0n1p1` or `dm-0`: lowercase letters, digits and
/// `-`, beginning with a letter. It is never parsed as an option or a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DiskName(String);

/// The name of a tunnel: 1 to 15 of `A-Z a-z 0-9 _ = + . -`, as in wg-quick(8), beginning with a letter or a digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TunnelName(String);

/// The name of a ZFS pool: 1 to 63 of `A-Z a-z 0-9 _ : . -`, beginning with a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PoolName(String);

/// A text that is no valid name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidDevice;

impl fmt::Display for InvalidDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid device name")
    }
}

impl std::error::Error for InvalidDevice {}

impl DiskName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TunnelName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PoolName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PoolName {
    type Error = InvalidDevice;

    fn try_from(name: String) -> Result<Self, InvalidDevice> {
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
        let all = |b: u8| b.is_ascii_alphanumeric() || b"_:.-".contains(&b);
        let fits = begins_well && name.len() <= 63 && name.bytes().all(all);
        fits.then_some(Self(name)).ok_or(InvalidDevice)
    }
}

impl TryFrom<String> for DiskName {
    type Error = InvalidDevice;

    fn try_from(name: String) -> Result<Self, InvalidDevice> {
        let begins_well = name.starts_with(|c: char| c.is_ascii_lowercase());
        let all = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let fits = begins_well && name.len() <= 31 && name.bytes().all(all);
        fits.then_some(Self(name)).ok_or(InvalidDevice)
    }
}

impl TryFrom<String> for TunnelName {
    type Error = InvalidDevice;

    fn try_from(name: String) -> Result<Self, InvalidDevice> {
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        let all = |b: u8| b.is_ascii_alphanumeric() || b"_=+.-".contains(&b);
        let fits = begins_well && name.len() <= 15 && name.bytes().all(all);
        fits.then_some(Self(name)).ok_or(InvalidDevice)
    }
}

impl From<DiskName> for String {
    fn from(DiskName(name): DiskName) -> Self {
        name
    }
}

impl From<PoolName> for String {
    fn from(PoolName(name): PoolName) -> Self {
        name
    }
}

impl From<TunnelName> for String {
    fn from(TunnelName(name): TunnelName) -> Self {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_neither_an_option_nor_a_path() {
        let disk = |name: &str| DiskName::try_from(name.to_owned()).is_ok();
        let tunnel = |name: &str| TunnelName::try_from(name.to_owned()).is_ok();
        let pool = |name: &str| PoolName::try_from(name.to_owned()).is_ok();
        assert!(pool("tank") && pool("Data_2") && !pool("2tank") && !disk(&"a".repeat(32)));
        assert!(
            disk("sda") && disk("nvme0n1") && disk("dm-0") && tunnel("wg0") && tunnel("home_v6.1")
        );
        for bad in ["", "-a", "a/b", "..", "a b", "a\0", "ä", &"a".repeat(64)] {
            assert!(!disk(bad) && !tunnel(bad) && !pool(bad), "{bad:?}");
        }
        assert!(!disk("Sda") && !tunnel(".wg0") && !tunnel("wg0123456789abcd"));
    }
}
