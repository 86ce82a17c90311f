//! Strings with a rule: validated when they are made or deserialized, with the rule in their JSON Schema.

use std::fmt;

/// A text that breaks the rule of its type, which is the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidText(pub(super) &'static str);

impl fmt::Display for InvalidText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidText {}

/// Defines a type of strings: its name, keywords of its JSON Schema (ECMA-262 for patterns), whether a text is valid,
/// the rule as the message of the error, and optionally a function that returns the text to keep for a valid one.
macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, { $($key:literal: $value:expr),+ }, $is_valid:expr, $rule:expr $(,)?) => {
        $crate::operations::text_type::text_type!(
            $(#[$doc])* $name, { $($key: $value),+ }, $is_valid, $rule, std::convert::identity
        );
    };
    (
        $(#[$doc:meta])* $name:ident, { $($key:literal: $value:expr),+ }, $is_valid:expr, $rule:expr, $kept:expr $(,)?
    ) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String", description = "", extend($($key = $value),+))]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::operations::text_type::InvalidText;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                let is_valid: fn(&str) -> bool = $is_valid;
                let rule = $crate::operations::text_type::InvalidText($rule);
                let kept: fn(String) -> String = $kept;
                if is_valid(&text) { Ok(Self(kept(text))) } else { Err(rule) }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::operations::text_type::InvalidText;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
pub(super) use text_type;
