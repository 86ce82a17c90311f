//! HTTP/2 frames written by hand (RFC 9113), for requests that no real client sends.

use super::raw::RawSocket;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
/// The type of the frame with the settings of a connection.
pub const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response with this body.
    Answered(String),
    /// The stream was reset, or the whole connection ended.
    Broken,
}

impl Outcome {
    /// Returns the name of the error; `broken` if the server rejected it on the HTTP/2 level.
    pub fn error(&self) -> String {
        match self {
            Self::Answered(body) => {
                let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
                body["error"].as_str().unwrap_or("none").to_owned()
            }
            Self::Broken => "broken".to_owned(),
        }
    }
}

/// Returns the first bytes of every client: the preface and empty settings.
pub fn preface() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes
}

/// Returns the beginning of a request whose headers never end: its method, and as many bytes of another header.
pub fn endless_headers(filling: usize) -> Vec<u8> {
    let block = [
        literal(":method", b"POST"),
        literal("x", &[b'x'; 60]).repeat(filling / 60),
    ];
    frame(HEADERS, 0, 1, &block.concat())
}

/// Returns the headers of a request with a JSON body, without any byte of the body.
pub fn half_a_post(stream: u32, path: &str) -> Vec<u8> {
    let headers = [
        (":method", "POST"),
        (":scheme", "https"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/json"),
    ];
    let block: Vec<u8> = headers
        .iter()
        .flat_map(|(name, value)| literal(name, value.as_bytes()))
        .collect();
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// Returns this many bytes of a body, but not its end.
pub fn half_a_body(stream: u32, length: usize) -> Vec<u8> {
    frame(DATA, 0, stream, &vec![b' '; length])
}

/// Sends one request with exactly these headers and this body, and waits for its outcome.
pub fn send(socket: &mut RawSocket, headers: &[(&str, &[u8])], body: &[u8]) -> Outcome {
    let mut bytes = preface();
    let block: Vec<u8> = headers
        .iter()
        .flat_map(|(name, value)| literal(name, value))
        .collect();
    let last = if body.is_empty() { END_STREAM } else { 0 };
    bytes.extend(frame(HEADERS, END_HEADERS | last, 1, &block));
    if !body.is_empty() {
        bytes.extend(frame(DATA, END_STREAM, 1, body));
    }
    socket.say(&bytes);
    outcome(socket)
}

/// Returns the outcome of the first request that gets a response.
pub fn outcome(socket: &mut RawSocket) -> Outcome {
    let (mut heard, mut body) = (Vec::new(), Vec::new());
    while let Some(part) = socket.hear() {
        heard.extend(part);
        while let Some((kind, flags, payload)) = take_frame(&mut heard) {
            match kind {
                DATA => body.extend(payload),
                // The response to a request may follow a GOAWAY without an error.
                GOAWAY if payload.get(4..8) == Some(&[0; 4]) => {}
                RST_STREAM | GOAWAY => return Outcome::Broken,
                _ => {}
            }
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                return Outcome::Answered(String::from_utf8_lossy(&body).into_owned());
            }
        }
    }
    Outcome::Broken
}

fn take_frame(heard: &mut Vec<u8>) -> Option<(u8, u8, Vec<u8>)> {
    let first: [u8; 9] = heard.get(..9)?.try_into().unwrap();
    let length = u32::from_be_bytes([0, first[0], first[1], first[2]]);
    let length = usize::try_from(length).unwrap();
    if heard.len() < 9 + length {
        return None;
    }
    let frame: Vec<u8> = heard.drain(..9 + length).collect();
    Some((first[3], first[4], frame[9..].to_vec()))
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes a header as a literal, without any table (RFC 7541, 6.2.2).
fn literal(name: &str, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name.as_bytes(), value] {
        let length = u8::try_from(text.len()).unwrap();
        if length < 127 {
            bytes.push(length);
        } else {
            bytes.extend([127, length - 127]);
        }
        bytes.extend(text);
    }
    bytes
}
