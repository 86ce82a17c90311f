//! A tool's answer: content for the model, and the same as data.

use serde::Serialize;
use serde_json::Value;

use super::{
    cx::Cx,
    error::ToolError,
    output::{Excerpt, is_visible, visible},
};
use crate::protocol::{Content, ResourceContents, SerializedJson, ToolResult};

/// A tool's answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Content for the model; after the data, if that is shown.
    pub content: Vec<Content>,
    /// Data for programs, as described by `outputSchema`.
    pub structured: Option<SerializedJson>,
    /// Whether the model is also shown the data.
    pub shows_data: bool,
    /// Whether the call failed, from the tool's point of view.
    pub failed: bool,
}

impl Answer {
    /// An answer with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// An answer with these blocks.
    pub fn of(content: Vec<Content>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// An answer with data, and with the same data as text in which control characters are escaped.
    pub fn data(data: &impl Serialize) -> Result<Self, ToolError> {
        Self::from_serialized(SerializedJson::of(data))
    }

    /// Separate from [`Self::data`], so that it is compiled once and not for each type of data.
    fn from_serialized(data: serde_json::Result<SerializedJson>) -> Result<Self, ToolError> {
        let data = data.map_err(|cause| {
            ToolError::new(format!("the result cannot be serialized as JSON: {cause}"))
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
            ..Self::text(visible(data.text().to_owned()))
        })
    }

    /// Adds data.
    #[must_use]
    pub fn with_data(mut self, data: &Value) -> Self {
        // Cannot fail: all keys are strings and all numbers are finite.
        self.structured = SerializedJson::of(data).ok();
        self
    }

    /// Adds data of which the text already has some `fields`, such as a command's output. If the text is long, these are
    /// left out of the data, except for a caller whose list has the tool's output schema, which requires them.
    #[must_use]
    pub fn with_data_of_text(self, data: &impl Serialize, fields: &[&str], cx: &Cx) -> Self {
        /// The maximum size of a text that is sent twice, in bytes.
        const TWICE: usize = 8 << 10;
        let texts = self.content.iter().map(|block| match block {
            Content::Text { text, .. } => text.len(),
            _ => 0,
        });
        // Cannot fail: all keys are strings and all numbers are finite.
        let mut data = serde_json::to_value(data).unwrap_or_default();
        if texts.sum::<usize>() > TWICE
            && !cx.caller().has_answer_schemas
            && let Some(object) = data.as_object_mut()
        {
            object.retain(|name, _| !fields.contains(&name.as_str()));
        }
        self.with_data(&data)
    }

    /// Adds a link to the complete data, such as `gatewren:///public/serverInfo`.
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

    /// Embeds a resource. Bytes that are not text are embedded in one as base64 ([`ResourceContents::of_bytes`]).
    #[must_use]
    pub fn with_resource(mut self, resource: ResourceContents) -> Self {
        self.content.push(Content::Resource {
            resource,
            annotations: None,
        });
        self
    }

    /// Sets the revision of the state that reflects the call.
    pub fn reflect(&mut self, revision: u64) {
        if let Some(data) = &mut self.structured {
            data.set("revision", revision);
        }
    }

    /// Returns what a person reads first: the first text, or else the data that is shown as text.
    pub fn first_text(&self) -> Option<&str> {
        let text = self.content.iter().find_map(|block| match block {
            Content::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let data = || self.structured.as_ref().filter(|_| self.shows_data);
        text.or_else(|| data().map(SerializedJson::text))
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
            // The error output of a program may be long, and is included unchanged.
            ..Self::text(Excerpt::of_error(&error.to_string()).text)
        }
    }
}
