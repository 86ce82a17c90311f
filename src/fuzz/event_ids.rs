//! Event ids, as clients return them in `Last-Event-ID`: parsed exactly as written, and nothing else is accepted.

use super::input::text;
use gatewren_server::transport::EventId;

/// Input: a header value.
pub fn are_our_own(data: &[u8]) {
    let Some(given) = text(data) else { return };
    if let Ok(id) = given.parse::<EventId>() {
        assert_eq!(id.to_string(), given, "an id has one spelling");
    }
    // Any numbers make an id that is valid in an event and in a header.
    let mut numbers = data.chunks(8).map(|bytes| {
        let number = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
        bytes.iter().fold(0, number)
    });
    let mut next = || numbers.next().unwrap_or_default();
    let (session, stream) = (next() & u64::from(u32::MAX), next());
    let written = format!(
        "{session:08x}.{}{stream:016x}.{}.{}.{}",
        if data.len().is_multiple_of(2) {
            'c'
        } else {
            's'
        },
        next(),
        next(),
        next()
    );
    let Ok(id) = written.parse::<EventId>() else {
        panic!("{written:?} is ours");
    };
    assert_eq!(id.to_string(), written);
    assert!(written.bytes().all(|b| b.is_ascii_graphic()));
}
