//! Requests as bytes that only need a new id, and the check of a reply.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Error;
use super::connection::Reply;

/// The kind of conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// 2025-11-25: `initialize`, a session, then calls.
    Stateful,
    /// 2026-07-28: every request is self-contained.
    Stateless,
}

impl Wire {
    /// Returns the name of the revision.
    pub fn revision(self) -> &'static str {
        match self {
            Self::Stateful => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }
}

/// A request of MCP.
#[derive(Debug)]
pub struct Question<'a> {
    /// The kind of conversation.
    pub wire: Wire,
    /// The method.
    pub method: &'a str,
    /// The value of `Mcp-Name`.
    pub name: Option<&'a str>,
    /// Members of the parameters, as JSON.
    pub params: &'a str,
}

/// Ids have seven digits, so that all requests of a kind have the same length; the run ends after the last.
const FIRST_ID: u32 = 1_000_000;
const LAST_ID: u32 = 9_999_999;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The handshake of the stateful wire.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"calls","version":"1"}}}"#;

/// The end of the handshake.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The headers of a request.
pub struct Head(String);

impl Head {
    /// Returns the minimal headers of an MCP client.
    pub fn new(host: SocketAddr) -> Self {
        Self::to("/mcp", host)
    }

    /// Returns the same for a server at another path.
    pub fn to(path: &str, host: SocketAddr) -> Self {
        Self(format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n"
        ))
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        // Writing to a `String` cannot fail.
        let _ = write!(self.0, "{name}: {value}\r\n");
        self
    }

    /// Adds the headers that the wire requires for this question.
    #[must_use]
    pub fn with_question(self, question: &Question<'_>) -> Self {
        match question.wire {
            Wire::Stateful => self.with("mcp-protocol-version", "2025-11-25"),
            Wire::Stateless => {
                let head = self
                    .with("mcp-protocol-version", "2026-07-28")
                    .with("mcp-method", question.method);
                match question.name {
                    Some(name) => head.with("mcp-name", name),
                    None => head,
                }
            }
        }
    }

    /// Returns the request with this body.
    pub fn request(&self, body: &str) -> Vec<u8> {
        format!("{}content-length: {}\r\n\r\n{body}", self.0, body.len()).into_bytes()
    }
}

/// A request that is sent repeatedly, each time with the next id.
pub struct Repeated {
    bytes: Vec<u8>,
    id_at: usize,
    id: u32,
}

impl Repeated {
    /// Makes a request from a head and a question.
    pub fn new(head: &Head, question: &Question<'_>) -> Self {
        let meta = (question.wire == Wire::Stateless).then_some(META);
        let members = [Some(question.params).filter(|p| !p.is_empty()), meta];
        let params: Vec<&str> = members.into_iter().flatten().collect();
        let before = r#"{"jsonrpc":"2.0","id":"#;
        let body = format!(
            r#"{before}{FIRST_ID},"method":"{}","params":{{{}}}}}"#,
            question.method,
            params.join(",")
        );
        let bytes = head.request(&body);
        Self {
            id_at: bytes.len() - body.len() + before.len(),
            bytes,
            id: FIRST_ID,
        }
    }

    /// Returns the next request and its id.
    pub fn next(&mut self) -> Result<(&[u8], u32), Error> {
        self.id += 1;
        let mut place = self
            .bytes
            .get_mut(self.id_at..)
            .filter(|_| self.id <= LAST_ID)
            .ok_or("the ids of a connection are used up; take shorter samples")?;
        write!(place, "{}", self.id)?;
        Ok((&self.bytes, self.id))
    }
}

/// The check of a reply.
pub enum Judge {
    /// For the anchor: this number of bytes.
    Fixed(usize),
    /// For MCP: a result for this very request. The bytes after the id of a correct reply are kept, because comparing
    /// them is cheaper than parsing the next reply as JSON.
    Result { known: Vec<u8> },
}

#[derive(Deserialize)]
struct Message {
    id: u32,
    result: Option<ToolResult>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ToolResult {
    #[serde(default, rename = "isError")]
    is_error: bool,
}

impl Judge {
    /// Returns an error if a reply is wrong.
    pub fn check(&mut self, id: u32, reply: &Reply<'_>) -> Result<(), Error> {
        let wrong = |what: &str| -> Error {
            let start = reply.body.get(..500).unwrap_or(reply.body);
            let body = String::from_utf8_lossy(start);
            format!("{what}: status {}, {body}", reply.status()).into()
        };
        if reply.status() != "200" {
            return Err(wrong("the wrong status"));
        }
        match self {
            Self::Fixed(size) if reply.body.len() == *size => Ok(()),
            Self::Fixed(_) => Err(wrong("a body of another size")),
            Self::Result { known } => {
                let body = message_in(reply);
                let rest = behind_id(body, id);
                if rest.is_some_and(|rest| rest == known) {
                    return Ok(());
                }
                let message: Message =
                    serde_json::from_slice(body).map_err(|e| wrong(&e.to_string()))?;
                let failed = message.result.is_none_or(|result| result.is_error);
                if message.id != id || message.error.is_some() || failed {
                    return Err(wrong("not a result for this request"));
                }
                known.clear();
                known.extend_from_slice(rest.unwrap_or_default());
                Ok(())
            }
        }
    }
}

/// Returns the message itself: a slow server sends it in a stream, as its last event.
fn message_in<'a>(reply: &Reply<'a>) -> &'a [u8] {
    if reply.header("content-type") != Some("text/event-stream") {
        return reply.body;
    }
    let lines = reply.body.split(|byte| *byte == b'\n');
    let mut data = lines.filter_map(|line| line.strip_prefix(b"data: "));
    data.next_back().unwrap_or_default()
}

fn behind_id(body: &[u8], id: u32) -> Option<&[u8]> {
    let rest = body.strip_prefix(br#"{"jsonrpc":"2.0","id":"#)?;
    let (digits, rest) = rest.split_at_checked(7)?;
    let mut expected = [0; 7];
    write!(expected.as_mut_slice(), "{id}").ok()?;
    (digits == expected).then_some(rest)
}
