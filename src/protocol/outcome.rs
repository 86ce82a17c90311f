//! The most frequent results, serialized directly to the response's bytes for each revision.

use std::mem;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::content::{Content, ResourceContents};
use super::encode::for_stateful;
use super::json::{MessageBytes, QuotedJson, SerializedJson};
use super::jsonrpc::{RequestId, RpcResponse};
use super::version::Version;

/// The result of `tools/call`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// For the model; it follows the data if `shows_data` is set.
    pub content: Vec<Content>,
    /// For programs, as `outputSchema` defines.
    pub structured: Option<SerializedJson>,
    /// Whether the model also gets the data, as the text of the JSON.
    pub shows_data: bool,
    /// Whether the call failed, by the tool's own criteria.
    pub failed: bool,
}

impl ToolResult {
    /// Returns the content for the model, with the data if `shows_data` is set.
    pub fn blocks(&self) -> Vec<Content> {
        let data = self.visible_data().map(|data| Content::text(data.text()));
        data.into_iter().chain(self.content.clone()).collect()
    }

    fn visible_data(&self) -> Option<&SerializedJson> {
        self.structured.as_ref().filter(|_| self.shows_data)
    }

    /// Returns the result as JSON, to inspect or store: without the server's signature.
    pub fn to_value(&self) -> Value {
        let mut result = Map::from_iter([
            ("content".to_owned(), json!(self.blocks())),
            ("isError".to_owned(), json!(self.failed)),
        ]);
        let structured = self.structured.as_ref().map(SerializedJson::to_value);
        result.extend(structured.map(|data| ("structuredContent".to_owned(), data)));
        Value::Object(result)
    }

    /// Returns the bytes of a response with it. `server` is the `_meta` that names the server (2026-07-28, basic).
    ///
    /// Fast path: with `BodySeed` and the rows of the audit, `tools/call` takes 137,677 instructions instead of
    /// 185,503.
    pub fn answer(&self, id: &RequestId, version: Version, server: &SerializedJson) -> Vec<u8> {
        // Structured content is unknown before 2025-06-18, and so are some kinds of content.
        if version < Version::V2025_06_18 {
            let result = for_stateful("tools/call", self.to_value(), version);
            return RpcResponse::write(Some(id), Ok(&result));
        }
        let structured = self.structured.as_ref().map_or("", SerializedJson::text);
        let texts = self.content.iter().map(|block| match block {
            Content::Text { text, .. } => text.len(),
            _ => ROOM,
        });
        // Shown as text, it also has a backslash before each quote.
        let shown = self.visible_data().map_or(0, |data| 2 * data.text().len());
        let mut answer = Answer::begin(id, texts.sum::<usize>() + structured.len() + shown);
        answer.content(self.visible_data(), &self.content);
        answer.member("isError", &self.failed);
        if let Some(data) = &self.structured {
            if version.is_modern() || data.is_object() {
                answer.write_serialized("structuredContent", data);
            } else {
                // The stateful revisions allow only objects.
                answer.text(",\"structuredContent\":{\"result\":");
                answer.text(data.text());
                answer.text("}");
            }
        }
        answer.end(version, server)
    }
}

/// The result of `resources/read`.
#[derive(Debug)]
pub enum ReadResult {
    /// Contents as read.
    Contents(Vec<ResourceContents>),
    /// One document.
    Document(ReadDocument),
}

/// A JSON document at one revision. Its text is already escaped, and in pieces if it is long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadDocument {
    /// The resource that was read.
    pub uri: String,
    /// Its text.
    pub text: QuotedJson,
    /// Its revision, which is in its contents' `_meta`.
    pub revision: u64,
}

impl ReadResult {
    /// Returns the bytes of a response with it. The result is valid only now and only for its credential
    /// (2026-07-28, caching). `server` is the `_meta` that names the server.
    pub fn answer(
        &self,
        id: &RequestId,
        version: Version,
        server: &SerializedJson,
    ) -> MessageBytes {
        let mut parts = Vec::new();
        let mut answer = match self {
            Self::Contents(contents) => {
                let long = |contents: &ResourceContents| {
                    let text = contents.text.as_ref().map_or(0, String::len);
                    text + contents.blob.as_ref().map_or(0, String::len)
                };
                let mut answer = Answer::begin(id, contents.iter().map(long).sum());
                answer.member("contents", contents);
                answer
            }
            Self::Document(document) => document.begin(id, &mut parts),
        };
        if version.is_modern() {
            answer.text(",\"ttlMs\":0,\"cacheScope\":\"private\"");
        }
        let last = answer.end(version, server);
        if parts.is_empty() {
            return last.into();
        }
        parts.push(last.into());
        MessageBytes::Many(parts)
    }
}

impl ReadDocument {
    /// Begins the response with it; everything before the end of a long text is moved to `parts`.
    fn begin(&self, id: &RequestId, parts: &mut Vec<Bytes>) -> Answer {
        let short = match &self.text {
            QuotedJson::Short(text) => text.as_slice(),
            QuotedJson::Long(_) => &[],
        };
        let mut answer = Answer::begin(id, self.uri.len() + short.len());
        answer.text("\"contents\":[{\"uri\":");
        answer.json(&self.uri);
        answer.text(",\"mimeType\":\"application/json\",\"text\":\"");
        answer.bytes.extend_from_slice(short);
        if let QuotedJson::Long(text) = &self.text {
            parts.reserve_exact(text.len() + 2);
            parts.push(mem::take(&mut answer.bytes).into());
            parts.extend(text.iter().cloned());
        }
        answer.text("\",\"_meta\":{\"gatewren/revision\":");
        answer.json(&self.revision);
        answer.text("}}]");
        answer
    }
}

/// The size of a response in addition to its long members.
const ROOM: usize = 512;

/// A response with a result, while it is written.
struct Answer {
    bytes: Vec<u8>,
    /// Whether the result has no member yet.
    empty: bool,
}

impl Answer {
    fn begin(id: &RequestId, long: usize) -> Self {
        // An eighth more for escapes; if that is not enough, the bytes are moved once.
        let mut bytes = Vec::with_capacity(long + long / 8 + ROOM);
        bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        let empty = true;
        let mut answer = Self { bytes, empty };
        answer.json(id);
        answer.text(",\"result\":{");
        answer
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn json(&mut self, value: &impl Serialize) {
        // Only string keys and finite numbers: serialization cannot fail.
        let _ = serde_json::to_writer(&mut self.bytes, value);
    }

    fn name(&mut self, name: &'static str) {
        let comma = if self.empty { "\"" } else { ",\"" };
        self.empty = false;
        self.text(comma);
        self.text(name);
        self.text("\":");
    }

    fn member(&mut self, name: &'static str, value: &impl Serialize) {
        self.name(name);
        self.json(value);
    }

    fn content(&mut self, shown: Option<&SerializedJson>, blocks: &[Content]) {
        let Some(data) = shown else {
            return self.member("content", &blocks);
        };
        self.name("content");
        self.text("[{\"type\":\"text\",\"text\":");
        self.json(&data.text());
        self.text("}");
        for block in blocks {
            self.text(",");
            self.json(block);
        }
        self.text("]");
    }

    fn write_serialized(&mut self, name: &'static str, value: &SerializedJson) {
        self.name(name);
        self.text(value.text());
    }

    fn end(mut self, version: Version, server: &SerializedJson) -> Vec<u8> {
        if version.is_modern() {
            self.text(",\"resultType\":\"complete\",\"_meta\":");
            self.text(server.text());
        }
        self.text("}}");
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::Implementation;
    use super::*;

    fn server() -> Implementation {
        Implementation {
            name: "x".into(),
            title: None,
            version: "1".into(),
            profile: None,
        }
    }

    /// The same response by way of the JSON of the newest shape.
    fn by_value(method: &str, mut result: Value, version: Version) -> Value {
        if let Some(object) = result.as_object_mut() {
            object.insert("resultType".into(), json!("complete"));
            if method == "resources/read" {
                object.insert("ttlMs".into(), json!(0));
                object.insert("cacheScope".into(), json!("private"));
            }
        }
        server().sign(&mut result);
        let shaped = if version.is_modern() {
            result
        } else {
            for_stateful(method, result, version)
        };
        json!({ "jsonrpc": "2.0", "id": "1", "result": shaped })
    }

    fn read(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn what_is_written_straight_is_what_each_revision_has() {
        let link = Content::ResourceLink {
            uri: "x:/y".into(),
            name: "y".into(),
            description: None,
            mime_type: None,
        };
        let id = RequestId::Text("1".into());
        let signature = server().signature();
        for structured in [
            None,
            Some(json!({ "a": [1, "\"\\\n\u{1}ä"], "b": {} })),
            Some(json!([2])),
            Some(json!("t")),
        ] {
            let structured = structured.map(|data| SerializedJson::of(&data).unwrap());
            for (version, shows_data) in Version::ALL.map(|v| [(v, false), (v, true)]).concat() {
                let result = ToolResult {
                    content: vec![Content::text("a\"b\n€"), link.clone()],
                    structured: structured.clone(),
                    shows_data,
                    failed: false,
                };
                let wanted = by_value("tools/call", result.to_value(), version);
                let answer = result.answer(&id, version, &signature);
                assert_eq!(read(&answer), wanted, "{version:?}");
            }
        }
        let none = ToolResult::default();
        assert!(
            none.answer(&id, Version::V2025_06_18, &signature)
                .ends_with(b"\"isError\":false}}")
        );
    }

    #[test]
    fn what_was_read_is_what_each_revision_has() {
        let signature = server().signature();
        let contents = || ResourceContents {
            uri: "x:/y".into(),
            text: Some("{\"a\":\"\u{1}\"}".into()),
            meta: Some(json!({ "revision": 1 })),
            ..ResourceContents::default()
        };
        for contents in [vec![], vec![contents()], vec![contents(), contents()]] {
            for version in Version::ALL {
                let wanted = by_value("resources/read", json!({ "contents": contents }), version);
                let result = ReadResult::Contents(contents.clone());
                let answer = result.answer(&RequestId::Text("1".into()), version, &signature);
                assert_eq!(read(&answer.into_one()), wanted, "{version:?}");
            }
        }
    }

    #[test]
    fn a_document_is_read_as_its_text_would_be() {
        let signature = server().signature();
        let id = RequestId::Text("1".into());
        for value in [
            json!(1),
            json!({ "a\n": "\"\\" }),
            json!(vec!["\"x"; 50_000]),
        ] {
            let document = ReadResult::Document(ReadDocument {
                uri: "x:/\"y".into(),
                text: QuotedJson::of(&value),
                revision: 7,
            });
            let contents = ReadResult::Contents(vec![ResourceContents {
                uri: "x:/\"y".into(),
                mime_type: Some("application/json".into()),
                text: Some(value.to_string()),
                meta: Some(json!({ "gatewren/revision": 7 })),
                ..ResourceContents::default()
            }]);
            for version in Version::ALL {
                let answer = document.answer(&id, version, &signature);
                let is_long = value.is_array();
                assert_eq!(
                    matches!(answer, MessageBytes::Many(_)),
                    is_long,
                    "{version:?}"
                );
                let wanted = contents.answer(&id, version, &signature);
                assert!(answer.into_one() == wanted.into_one(), "{version:?}");
            }
        }
    }
}
