//! Text of limited length, with the limit in the schema.

use schemars::JsonSchema;
use serde::Deserialize;

/// 1 to `MOST` characters that are not all blank.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", description = "", extend("minLength" = 1, "maxLength" = MOST))]
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
