//! `search` and `read`: full-text search over the resources that the caller may see.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::bounded_number::BoundedNumber;
use gatewren_wire::protocol::ResourceContents;
use gatewren_wire::registry::{
    Answer, Cx, Excerpt, Page, ResourceSource, Result, Risk, Scope, ToolError, Toolset,
};

/// The searched resource: the whole public state.
const EVERYTHING: &str = "gatewren:///public";

/// The number of characters of a value in a result.
const EXCERPT: usize = 200;

/// The maximum length of a query in characters, and the maximum number of words in it.
const MAX_QUERY: usize = 200;
const MAX_WORDS: usize = 16;

/// A larger value is answered by the names of its parts, up to this number.
const MAX_VALUE_BYTES: usize = 40 << 10;
const MAX_PARTS: u32 = 200;

/// A resource source with search and read tools.
pub struct ResourceLibrary(Arc<dyn ResourceSource>);

/// The toolset.
pub fn tools(source: Arc<dyn ResourceSource>) -> Toolset<ResourceLibrary> {
    Toolset::new(Arc::new(ResourceLibrary(source)))
        .with_name("suggest")
        .tool("search", Risk::Read, search)
        .about(Scope::Within)
        .titled("Search the server")
        .answering("read", Risk::Read, read)
        .about(Scope::Within)
        .returning::<Entry>()
        .titled("Read an entry")
}

/// Search this server's state by words: containers, addresses, units, disks, settings. Every word must occur in an
/// entry's path or value; otherwise nothing is found. Pass the `id` of a result to `read`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Words to search for, such as `jellyfin address`.
    query: String,
    /// The maximum number of results; `more` reports whether there are others.
    #[serde(default)]
    limit: Limit,
}

type Limit = BoundedNumber<1, 50, 20>;

#[derive(Serialize, JsonSchema)]
struct Found {
    /// The widest entries that match, in the order of their paths.
    results: Vec<Hit>,
    /// Whether there are more results.
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct Hit {
    /// The resource's URI, for `read`.
    id: String,
    /// Its path, from the widest word to the narrowest.
    title: String,
    /// The beginning of its value.
    text: String,
}

async fn search(
    library: Arc<ResourceLibrary>,
    Search { query, limit }: Search,
    cx: Cx,
) -> Result<Found> {
    let words = words(&query)?;
    let contents = library.read(EVERYTHING, &cx).await?;
    let text = contents.and_then(|contents| contents.text);
    let found = spawn_blocking(move || {
        // The search runs over the same text that a read returns: data hidden from this agent is never found.
        let document = serde_json::from_str(&text.unwrap_or_default()).unwrap_or(Value::Null);
        let mut search = Searching {
            words: &words,
            limit: usize::try_from(limit.get()).unwrap_or(usize::MAX),
            found: Vec::new(),
            more: false,
        };
        search.look(&mut Vec::new(), &document);
        Found {
            results: search.found,
            more: search.more,
        }
    });
    found
        .await
        .map_err(|_| ToolError::new("The search was interrupted.").into())
}

fn words(query: &str) -> Result<Vec<String>> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() || words.len() > MAX_WORDS || query.chars().count() > MAX_QUERY {
        let rule =
            format!("`query` must have 1 to {MAX_WORDS} words and at most {MAX_QUERY} characters");
        return Err(ToolError::new(rule).into());
    }
    Ok(words)
}

impl ResourceLibrary {
    async fn read(&self, uri: &str, cx: &Cx) -> Result<Option<ResourceContents>> {
        let contents = self.0.read(&cx.caller().viewer(), uri).await?;
        Ok(contents.and_then(|contents| contents.into_iter().next()))
    }
}

struct Searching<'a> {
    words: &'a [String],
    limit: usize,
    found: Vec<Hit>,
    more: bool,
}

impl Searching<'_> {
    /// Examines an entry, and its children only if the entry itself does not match: a container that matches is one
    /// result, and not each of its values.
    fn look(&mut self, place: &mut Vec<String>, value: &Value) {
        if self.more {
            return;
        }
        let title = place.join(" › ");
        let fits = |own: &str| {
            let (title, own) = (title.to_lowercase(), own.to_lowercase());
            let mut words = self.words.iter();
            words.all(|word| title.contains(word.as_str()) || own.contains(word.as_str()))
        };
        match value {
            _ if fits("") => self.add_hit(place, title, value),
            Value::Object(members) => {
                for (name, value) in members {
                    place.push(name.clone());
                    self.look(place, value);
                    place.pop();
                }
            }
            Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
                for (index, value) in items.iter().enumerate() {
                    place.push(index.to_string());
                    self.look(place, value);
                    place.pop();
                }
            }
            leaf if fits(&leaf.to_string()) => self.add_hit(place, title, leaf),
            _ => {}
        }
    }

    fn add_hit(&mut self, place: &[String], title: String, value: &Value) {
        if self.found.len() == self.limit {
            self.more = true;
            return;
        }
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.found.push(Hit {
            id: uri_below(EVERYTHING, place),
            title,
            text: text.chars().take(EXCERPT).collect(),
        });
    }
}

/// Returns the URI of a path below another: a JSON Pointer (RFC 6901, section 6), with the escapes of URIs.
fn uri_below(uri: &str, place: &[String]) -> String {
    let mut uri = uri.to_owned();
    for name in place {
        uri.push('/');
        for byte in name.replace('~', "~0").replace('/', "~1").bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                uri.push(char::from(byte));
            } else {
                // Writing to a `String` cannot fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

/// Read one entry: a result of `search`, or a path of the state such as /public/serverInfo. Fails if the path is not
/// found. A long entry is returned in parts: pass one of `parts` as `id`, or `next_offset` as `offset`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    /// The `id` of a `search` result, the URI of a resource, or a JSON Pointer that begins with /public.
    id: String,
    /// Where to continue: the `next_offset` of the previous answer.
    #[serde(default)]
    offset: u64,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    /// The resource's URI.
    id: String,
    /// The revision of the state that it was read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// The text, for an entry that is plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// If the value is too large for an answer: the ids of its parts, to read one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<String>,
    /// Whether there is more text, or more parts.
    truncated: bool,
    /// The `offset` at which they begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

async fn read(library: Arc<ResourceLibrary>, Read { id, offset }: Read, cx: Cx) -> Result<Answer> {
    let id = if id.starts_with('/') {
        // A pointer has other escapes than a URI.
        let names = id.split('/').skip(1);
        let names = names.map(|name| name.replace("~1", "/").replace("~0", "~"));
        uri_below("gatewren://", &names.collect::<Vec<_>>())
    } else {
        id
    };
    let contents = library.read(&id, &cx).await?;
    let contents = contents.ok_or_else(|| {
        let shown: String = id.chars().take(EXCERPT).collect();
        ToolError::new(format!("Path not found: {shown}")).hint("search finds what exists.")
    })?;
    Ok(entry_answer(&id, contents, offset)?)
}

/// Returns an entry, with resources that it is a part of.
fn entry_answer(
    id: &str,
    mut contents: ResourceContents,
    offset: u64,
) -> std::result::Result<Answer, ToolError> {
    let blob = contents.blob.take();
    let entry = entry(id, &contents, offset);
    let mut answer = Answer::data(&entry)?;
    if let Some(blob) = blob {
        let resource = ResourceContents {
            blob: Some(blob),
            ..contents
        };
        answer = answer.with_resource(resource);
    } else if entry.truncated || !entry.parts.is_empty() {
        answer = answer.with_link(id, &entry.id, "The whole entry");
    }
    Ok(answer)
}

fn entry(id: &str, contents: &ResourceContents, offset: u64) -> Entry {
    let meta = contents.meta.as_ref();
    let revision = meta.and_then(|meta| meta.get("gatewren/revision")?.as_u64());
    let mut entry = Entry {
        id: id.to_owned(),
        revision,
        value: None,
        text: None,
        parts: Vec::new(),
        truncated: false,
        next_offset: None,
    };
    let text = contents.text.as_deref().unwrap_or_default();
    let is_json = contents.mime_type.as_deref() == Some("application/json");
    let value = is_json.then(|| serde_json::from_str(text).ok()).flatten();
    match value {
        None => {
            let bytes = text.as_bytes();
            let begin = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
            let rest = bytes.get(begin..).unwrap_or_default();
            let window = rest.get(..Excerpt::WINDOW).unwrap_or(rest);
            let page = Excerpt::page(window, begin as u64, bytes.len() as u64);
            entry.text = Some(page.text);
            (entry.truncated, entry.next_offset) = (page.truncated, page.next_offset);
        }
        Some(value) if text.len() <= MAX_VALUE_BYTES => entry.value = Some(value),
        Some(value) => {
            let names: Vec<String> = match &value {
                Value::Object(members) => members.keys().cloned().collect(),
                Value::Array(items) => (0..items.len()).map(|at| at.to_string()).collect(),
                _ => Vec::new(),
            };
            entry.value = Some(json!(format!("[{} bytes]", text.len())));
            let parts = names.into_iter().map(|name| uri_below(&entry.id, &[name]));
            let page = Page::of(parts, offset, MAX_PARTS);
            entry.parts = page.items;
            (entry.truncated, entry.next_offset) = (page.truncated, page.next_offset);
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_search(query: &str, limit: usize) -> (Vec<String>, bool) {
        let document = json!({
            "packageData": {
                "jellyfin": { "status": "running", "addresses": ["10.0.3.7"] },
                "a/b": { "status": "stopped" },
            },
            "serverInfo": { "hostname": "box", "disks": [{ "name": "sda", "sizeBytes": 5 }] },
        });
        let words = words(query).unwrap();
        let mut search = Searching {
            words: &words,
            limit,
            found: Vec::new(),
            more: false,
        };
        search.look(&mut Vec::new(), &document);
        let ids = search.found.into_iter().map(|hit| hit.id);
        (
            ids.map(|id| id.replace("gatewren:///public", "")).collect(),
            search.more,
        )
    }

    #[test]
    fn every_word_is_in_the_place_or_in_the_value_of_a_result() {
        for (query, expected) in [
            ("jellyfin", &["/packageData/jellyfin"][..]),
            ("JELLYFIN address", &["/packageData/jellyfin/addresses"]),
            ("10.0.3.7", &["/packageData/jellyfin/addresses"]),
            ("status stopped", &["/packageData/a~1b/status"]),
            ("a/b", &["/packageData/a~1b"]),
            ("sda", &["/serverInfo/disks/0/name"]),
            ("jellyfin stopped", &[]),
        ] {
            assert_eq!(run_search(query, 20).0, expected, "{query}");
        }
        assert_eq!(run_search("status", 1).0.len(), 1);
        assert!(run_search("status", 1).1 && !run_search("status", 2).1);
        assert!(words(" ").is_err() && words(&"x ".repeat(17)).is_err());
    }

    #[test]
    fn a_place_is_a_uri_that_leads_there() {
        let uri = uri_below(EVERYTHING, &["ä b".to_owned(), "~/%".to_owned()]);
        assert_eq!(uri, "gatewren:///public/%C3%A4%20b/~0~1%25");
        let pointer =
            gatewren_store::state::Pointer::from_uri_path(&uri["gatewren://".len()..]).unwrap();
        assert_eq!(pointer.tokens(), ["public", "ä b", "~/%"]);
    }

    #[test]
    fn what_is_too_large_is_named_in_parts() {
        let value = json!({ "a": "x".repeat(MAX_VALUE_BYTES), "b": 1 });
        let contents = |text: String| ResourceContents {
            mime_type: Some("application/json".to_owned()),
            text: Some(text),
            ..ResourceContents::default()
        };
        let large = entry("u", &contents(value.to_string()), 0);
        assert_eq!((large.parts.len(), large.truncated), (2, false));
        assert_eq!(large.parts, ["u/a", "u/b"]);
        let rest = entry("u", &contents(value.to_string()), 1);
        assert_eq!(rest.parts, ["u/b"]);
        let small = entry("u", &contents("{\"b\":1}".to_owned()), 0);
        assert_eq!(
            (small.value, small.parts.len()),
            (Some(json!({ "b": 1 })), 0)
        );
        let many: Vec<Value> = (0..201).map(|_| "x".repeat(300).into()).collect();
        let many = entry("u", &contents(json!(many).to_string()), 0);
        assert_eq!((many.parts.len(), many.next_offset), (200, Some(200)));
    }

    #[test]
    fn a_long_text_is_read_on_and_bytes_are_a_resource() {
        let text = "ä\u{1b}".repeat(20_000);
        let mut contents = ResourceContents {
            text: Some(text),
            ..ResourceContents::default()
        };
        let (mut at, mut read) = (Some(0), 0);
        while let Some(offset) = at {
            let page = entry("u", &contents, offset);
            read += page.text.unwrap().matches("ä^[").count();
            at = page.next_offset;
        }
        assert_eq!(read, 20_000);
        let link = |answer: &Answer| json!(answer.content).to_string().contains("resource_link");
        assert!(link(&entry_answer("u", contents.clone(), 0).unwrap()));
        contents.text = None;
        contents.blob = Some("AAAA".to_owned());
        let bytes = entry_answer("u", contents, u64::MAX).unwrap();
        assert!(!link(&bytes) && json!(bytes.content).to_string().contains("AAAA"));
    }
}
