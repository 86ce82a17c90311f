//! Event ids: the session, the stream, the position in it, and the revision of the resources.

use std::fmt;
use std::str::FromStr;

/// The kind of request that opened a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamOrigin {
    /// A POST: the stream ends with the answer to that call.
    Call,
    /// A GET: the stream ends when either side closes it.
    Session,
}

/// An event id, as it is sent with its event and returned as `Last-Event-ID`.
///
/// It is not a secret and authenticates nothing: it is looked up only among the streams of the session that the
/// request was authenticated for. It contains part of the session's name, so that ids of other sessions are
/// detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventId {
    /// The first bits of the session's name.
    pub session: u32,
    /// The kind of request that opened the stream.
    pub origin: StreamOrigin,
    /// The stream's name: random, so that it stays unique across restarts.
    pub stream: u64,
    /// The last event that the client has received with this id, counted from 1.
    pub count: u64,
    /// The revision of the resources that the stream had reported at this event.
    pub revision: u64,
    /// The connection of the stream that an event without a message opened; 0 for a message.
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
            StreamOrigin::Call => 'c',
            StreamOrigin::Session => 's',
        };
        write!(
            f,
            "{session:08x}.{origin}{stream:016x}.{count}.{revision}.{connection}"
        )
    }
}

/// The text is not an event id of this server.
#[derive(Debug, PartialEq, Eq)]
pub struct ForeignEventId;

impl FromStr for EventId {
    type Err = ForeignEventId;

    fn from_str(text: &str) -> Result<Self, ForeignEventId> {
        read(text).ok_or(ForeignEventId)
    }
}

fn read(text: &str) -> Option<EventId> {
    let mut parts = text.split('.');
    let session = u32::from_str_radix(parts.next()?, 16).ok()?;
    let stream = parts.next()?;
    let origin = match stream.chars().next()? {
        'c' => StreamOrigin::Call,
        's' => StreamOrigin::Session,
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
    // Only the canonical form: the parser also accepts numbers such as `+1` and `01`.
    (id.to_string() == text).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::super::event_id::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        let id = EventId {
            session: 0xab,
            origin: StreamOrigin::Session,
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
            assert_eq!(bad.parse::<EventId>(), Err(ForeignEventId), "{bad}");
        }
    }
}
