//! A number of seconds that cannot be out of range, with the range in the schema.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// `LEAST` to `MOST` seconds; `USUAL` when nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub struct Seconds<const LEAST: u32, const MOST: u32, const USUAL: u32>(u32);

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> Seconds<LEAST, MOST, USUAL> {
    /// The same as a duration.
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0.into())
    }
}

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> Default for Seconds<LEAST, MOST, USUAL> {
    fn default() -> Self {
        Self(USUAL)
    }
}

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> TryFrom<u32>
    for Seconds<LEAST, MOST, USUAL>
{
    type Error = String;

    fn try_from(seconds: u32) -> Result<Self, String> {
        if (LEAST..=MOST).contains(&seconds) {
            Ok(Self(seconds))
        } else {
            Err(format!("{LEAST} to {MOST} seconds, not {seconds}"))
        }
    }
}

impl<const LEAST: u32, const MOST: u32, const USUAL: u32> JsonSchema
    for Seconds<LEAST, MOST, USUAL>
{
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST, "default": USUAL })
    }
}
