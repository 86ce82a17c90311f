//! The name of a snapshot, as LXC assigns it.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a snapshot: `snap` and a number, such as `snap0`. It is never parsed as an option, as a path, or as
/// LXC's keyword for all snapshots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SnapshotName(u32);

const PATTERN: &str = "^snap(0|[1-9][0-9]{0,8})$";

/// A text that is no valid snapshot name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSnapshot;

impl fmt::Display for InvalidSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a snapshot is named 'snap' and a number, such as snap0")
    }
}

impl std::error::Error for InvalidSnapshot {}

impl TryFrom<String> for SnapshotName {
    type Error = InvalidSnapshot;

    fn try_from(name: String) -> Result<Self, InvalidSnapshot> {
        let digits = name.strip_prefix("snap").ok_or(InvalidSnapshot)?;
        let number = digits.parse().ok().map(Self).ok_or(InvalidSnapshot)?;
        // Each snapshot has exactly one spelling.
        let good = digits.len() <= 9 && number.to_string() == name;
        good.then_some(number).ok_or(InvalidSnapshot)
    }
}

impl std::str::FromStr for SnapshotName {
    type Err = InvalidSnapshot;

    fn from_str(name: &str) -> Result<Self, InvalidSnapshot> {
        name.to_owned().try_into()
    }
}

impl From<SnapshotName> for String {
    fn from(name: SnapshotName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "snap{}", self.0)
    }
}

impl schemars::JsonSchema for SnapshotName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SnapshotName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": PATTERN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lxc_would_name_is_a_name() {
        for good in ["snap0", "snap7", "snap999999999"] {
            assert_eq!(good.parse::<SnapshotName>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "ALL",
            "snap",
            "snap-1",
            "snap+1",
            "snap01",
            "snap1 ",
            "-d",
            "snap1/../..",
            "snap1\n",
            "snap9999999999",
            "0",
        ] {
            assert_eq!(bad.parse::<SnapshotName>(), Err(InvalidSnapshot), "{bad:?}");
        }
        let by_number = ["snap2", "snap10"].map(|name| name.parse::<SnapshotName>().unwrap());
        assert!(by_number[0] < by_number[1]);
    }
}
