//! Resources that are created on each read: text and bytes, one for each number.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use time::OffsetDateTime;

use crate::protocol::{ResourceContents, ResourceTemplate};

const TEXT: &str = "demo://resource/dynamic/text/";
const BLOB: &str = "demo://resource/dynamic/blob/";

/// Which of the two families.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Family {
    /// Resources with text.
    #[default]
    Text,
    /// Resources with base64.
    Blob,
}

impl Family {
    /// Both, in the order of completions.
    pub const ALL: [Self; 2] = [Self::Text, Self::Blob];

    /// The name that arguments use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "Text",
            Self::Blob => "Blob",
        }
    }

    /// The media type of its resources.
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Blob => "application/octet-stream",
        }
    }

    /// The URI template with the variable `resourceId`.
    pub fn template(self) -> String {
        format!("{}{{resourceId}}", self.base())
    }

    /// The URI of a resource.
    pub fn uri(self, id: u64) -> String {
        format!("{}{id}", self.base())
    }

    /// A resource, created now.
    pub fn member(self, id: u64) -> ResourceContents {
        let (hour, minute, second) = OffsetDateTime::now_utc().time().as_hms();
        let words = format!(
            "Resource {id}: {} made at {hour:02}:{minute:02}:{second:02} UTC",
            self.name().to_lowercase()
        );
        let (text, blob) = match self {
            Self::Text => (Some(words), None),
            Self::Blob => (None, Some(STANDARD.encode(words))),
        };
        ResourceContents {
            uri: self.uri(id),
            mime_type: Some(self.mime_type().to_owned()),
            text,
            blob,
            meta: None,
        }
    }

    fn base(self) -> &'static str {
        match self {
            Self::Text => TEXT,
            Self::Blob => BLOB,
        }
    }
}

/// The number of a resource: an integer above zero.
pub fn id(text: &str) -> Option<u64> {
    text.parse().ok().filter(|id| *id > 0)
}

/// Returns the resource with this URI.
pub fn find(uri: &str) -> Option<ResourceContents> {
    Family::ALL.into_iter().find_map(|family| {
        let id = id(uri.strip_prefix(family.base())?)?;
        Some(family.member(id))
    })
}

/// The list of templates.
pub fn templates() -> Vec<ResourceTemplate> {
    let template = |family: Family, name: &str, description: &str| ResourceTemplate {
        uri_template: family.template(),
        name: name.to_owned(),
        description: Some(description.to_owned()),
        mime_type: Some(family.mime_type().to_owned()),
        ..ResourceTemplate::default()
    };
    vec![
        template(
            Family::Text,
            "Dynamic Text Resource",
            "A text made when it is read, from an integer above zero",
        ),
        template(
            Family::Blob,
            "Dynamic Blob Resource",
            "Bytes made when they are read, from an integer above zero",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_named_by_an_integer_above_zero() {
        let text = find("demo://resource/dynamic/text/12").unwrap();
        assert!(text.text.unwrap().starts_with("Resource 12: text made at "));
        let blob = find("demo://resource/dynamic/blob/3").unwrap();
        assert!(blob.text.is_none() && blob.blob.is_some());
        for wrong in ["text/0", "text/-1", "text/1.5", "text/", "text/1/2", "x/1"] {
            assert_eq!(find(&format!("demo://resource/dynamic/{wrong}")), None);
        }
    }
}
