//! A number with a range that is validated and part of the schema.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

/// A number from `LEAST` to `MOST`; the default is `USUAL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "u32")]
#[schemars(with = "u32", description = "")]
#[schemars(extend("minimum" = LEAST, "maximum" = MOST, "default" = USUAL))]
pub struct BoundedNumber<const LEAST: u32, const MOST: u32, const USUAL: u32>(u32);

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> BoundedNumber<LEAST, MOST, USUAL> {
    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }

    /// The number as seconds.
    pub fn seconds(self) -> Duration {
        Duration::from_secs(self.0.into())
    }
}

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> Default
    for BoundedNumber<LEAST, MOST, USUAL>
{
    fn default() -> Self {
        Self(USUAL)
    }
}

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> TryFrom<u32>
    for BoundedNumber<LEAST, MOST, USUAL>
{
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        if (LEAST..=MOST).contains(&number) {
            Ok(Self(number))
        } else {
            Err(format!("must be {LEAST} to {MOST}, not {number}"))
        }
    }
}
