//! The name of a snapshot, as LXC assigns it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text_type::InvalidText;

/// The name of a snapshot: `snap` and a number, such as `snap0`. It is never parsed as an option, as a path, or as
/// LXC's keyword for all snapshots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", description = "", extend("pattern" = "^snap(0|[1-9][0-9]{0,8})$"))]
pub struct SnapshotName(u32);

const INVALID: InvalidText = InvalidText("a snapshot is named 'snap' and a number, such as snap0");

impl TryFrom<String> for SnapshotName {
    type Error = InvalidText;

    fn try_from(name: String) -> Result<Self, InvalidText> {
        let digits = name.strip_prefix("snap").ok_or(INVALID)?;
        let number = digits.parse().ok().map(Self).ok_or(INVALID)?;
        // Each snapshot has exactly one spelling.
        let good = digits.len() <= 9 && number.to_string() == name;
        good.then_some(number).ok_or(INVALID)
    }
}

impl std::str::FromStr for SnapshotName {
    type Err = InvalidText;

    fn from_str(name: &str) -> Result<Self, InvalidText> {
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
            assert!(bad.parse::<SnapshotName>().is_err(), "{bad:?}");
        }
        let by_number = ["snap2", "snap10"].map(|name| name.parse::<SnapshotName>().unwrap());
        assert!(by_number[0] < by_number[1]);
    }
}
