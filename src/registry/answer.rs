//! What a tool answers: content for the model, and the same as data.

use serde::Serialize;
use serde_json::Value;

use super::{
    error::ToolError,
    output::{Excerpt, is_visible, visible},
};
use crate::protocol::{Content, ResourceContents, ToolResult, Written};

/// A tool's answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// For the model; behind the data, where that is shown.
    pub content: Vec<Content>,
    /// For programs, as `outputSchema` says.
    pub structured: Option<Written>,
    /// The model is shown the data too.
    pub shows_data: bool,
    /// The call failed, in the tool's own terms.
    pub failed: bool,
}

impl Answer {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// An answer of these blocks.
    pub fn of(content: Vec<Content>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// Data, and the same as text, in which control characters are escapes.
    pub fn data(data: &impl Serialize) -> Result<Self, ToolError> {
        Self::written(Written::of(data))
    }

    /// Beside [`Self::data`], so that it is compiled once and not for each kind of data.
    fn written(data: serde_json::Result<Written>) -> Result<Self, ToolError> {
        let data = data.map_err(|cause| {
            ToolError::new(format!("the answer cannot be written as JSON: {cause}"))
        })?;
        if is_visible(data.text()) {
            return Ok(Self {
                structured: Some(data),
                shows_data: true,
                ..Self::default()
            });
        }
        Ok(Self {
            structured: Some(data.clone()),
            ..Self::text(visible(data.to_lines()))
        })
    }

    /// The same with data beside it.
    #[must_use]
    pub fn with_data(mut self, data: &Value) -> Self {
        // Text keys and finite numbers only: nothing here can fail to be written.
        self.structured = Written::of(data).ok();
        self
    }

    /// The same with the place where all of it can be read, such as `gatewren:///public/serverInfo`.
    #[must_use]
    pub fn with_link(mut self, uri: &str, name: &str, description: &str) -> Self {
        self.content.push(Content::ResourceLink {
            uri: uri.to_owned(),
            name: name.to_owned(),
            description: Some(description.to_owned()),
            mime_type: None,
        });
        self
    }

    /// The same with a resource in place: bytes that are no text stand in one, as base64
    /// ([`ResourceContents::of_bytes`]).
    #[must_use]
    pub fn with_resource(mut self, resource: ResourceContents) -> Self {
        self.content.push(Content::Resource {
            resource,
            annotations: None,
        });
        self
    }

    /// Says which revision of the state reflects the call.
    pub fn reflect(&mut self, revision: u64) {
        if let Some(data) = &mut self.structured {
            data.set("revision", revision);
        }
    }

    /// The result of `tools/call`.
    pub fn into_result(self) -> ToolResult {
        let Self {
            content,
            structured,
            shows_data,
            failed,
        } = self;
        ToolResult {
            content,
            structured,
            shows_data,
            failed,
        }
    }
}

impl From<ToolError> for Answer {
    fn from(error: ToolError) -> Self {
        Self {
            failed: true,
            // What a program complained of may be long, and stands in it as the program wrote it.
            ..Self::text(Excerpt::of_error(&error.to_string()).text)
        }
    }
}
