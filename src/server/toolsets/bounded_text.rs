//! Text of limited length, with the limit in the schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// 1 to `MOST` characters that are not all blank.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct BoundedText<const MOST: usize>(String);

impl<const MOST: usize> BoundedText<MOST> {
    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }
}

impl<const MOST: usize> TryFrom<String> for BoundedText<MOST> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let letters = text.chars().count();
        if letters > MOST {
            return Err(format!(
                "must have at most {MOST} characters, not {letters}"
            ));
        }
        if text.trim().is_empty() {
            return Err("must not be blank".to_owned());
        }
        Ok(Self(text))
    }
}

impl<const MOST: usize> JsonSchema for BoundedText<MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": MOST })
    }
}
