//! Event ids: which session, which of its streams, the place in it, and the revision that it shows.

use std::fmt;
use std::str::FromStr;

/// What a stream was opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A POST: it ends with the answer to that call.
    Call,
    /// A GET: it ends when either side likes.
    Session,
}

/// An event id, as it stands before its event and comes back as `Last-Event-ID`.
///
/// It is no secret and proves nothing: it is only ever looked up among the streams of the session that the
/// request was let into. The session's mark in it is there so that an id of another one is known as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventId {
    /// The first bits of the session's name.
    pub session: u32,
    /// What the stream was opened for.
    pub origin: Origin,
    /// Names the stream, also beyond a restart: it is random.
    pub stream: u64,
    /// The last event that whoever has this id has seen, counted from 1.
    pub count: u64,
    /// The revision of the resources that the stream had told by then.
    pub revision: u64,
    /// Which connection of the stream an event without a message opened; 0 for a message.
    pub connection: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            session,
            stream,
            count,
            revision,
            connection,
            ..
        } = self;
        let origin = match self.origin {
            Origin::Call => 'c',
            Origin::Session => 's',
        };
        write!(
            f,
            "{session:08x}.{origin}{stream:016x}.{count}.{revision}.{connection}"
        )
    }
}

/// It is no id of ours.
#[derive(Debug, PartialEq, Eq)]
pub struct Foreign;

impl FromStr for EventId {
    type Err = Foreign;

    fn from_str(text: &str) -> Result<Self, Foreign> {
        read(text).ok_or(Foreign)
    }
}

fn read(text: &str) -> Option<EventId> {
    let mut parts = text.split('.');
    let session = u32::from_str_radix(parts.next()?, 16).ok()?;
    let stream = parts.next()?;
    let origin = match stream.chars().next()? {
        'c' => Origin::Call,
        's' => Origin::Session,
        _ => return None,
    };
    let id = EventId {
        session,
        origin,
        stream: u64::from_str_radix(stream.get(1..)?, 16).ok()?,
        count: parts.next()?.parse().ok()?,
        revision: parts.next()?.parse().ok()?,
        connection: parts.next()?.parse().ok()?,
    };
    // Only as it is written: of the digits that are read, `+1` and `01` are others.
    (id.to_string() == text).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        let id = EventId {
            session: 0xab,
            origin: Origin::Session,
            stream: 7,
            count: 3,
            revision: 12,
            connection: 0,
        };
        assert_eq!(id.to_string(), "000000ab.s0000000000000007.3.12.0");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in [
            "",
            "junk",
            "1.2.3",
            "ab.s7.3.12.0",
            "000000ab.x0000000000000007.3.12.0",
            "000000ab.s0000000000000007.3.12",
            "000000ab.s0000000000000007.3.12.0.0",
            "000000ab.s.3.12.0",
            "000000ab.é000000000000007.3.12.0",
            "000000AB.s0000000000000007.3.12.0",
            "+00000ab.s0000000000000007.3.12.0",
            "000000ab.s0000000000000007.+3.12.0",
            "000000ab.s0000000000000007.03.12.0",
            "000000ab.s0000000000000007.-3.12.0",
            "000000ab.s0000000000000007.99999999999999999999.12.0",
        ] {
            assert_eq!(bad.parse::<EventId>(), Err(Foreign), "{bad}");
        }
    }
}
