//! Encodes and decodes D-Bus messages (D-Bus specification, "Message Format"); keeps only the fields in use.

use super::error::BusError;
use super::reader::BusReader;
use super::value::{Argument, BusValue};

/// Longer messages close the connection; the specification allows sixteen times as much.
/// `ListUnits` needs about 300 bytes a unit.
const MAX_BYTES: usize = 8 << 20;

/// The size of the header's fixed part.
const FIXED_BYTES: usize = 16;

/// A received message.
#[derive(Debug, Default)]
pub struct BusMessage {
    /// Its kind.
    pub(super) kind: BusMessageKind,
    /// The object that emitted a signal.
    pub path: Option<String>,
    /// The name of a signal.
    pub member: Option<String>,
    /// The name of an error.
    pub(super) error: Option<String>,
    /// The serial number of the call that it answers.
    pub(super) reply_to: Option<u64>,
    /// Its arguments.
    pub body: Vec<BusValue>,
}

impl BusMessage {
    /// Returns a signal, as the bus would send it.
    #[cfg(test)]
    pub fn signal(path: &str, member: &str, body: Vec<BusValue>) -> Self {
        Self {
            kind: BusMessageKind::Signal,
            path: Some(path.to_owned()),
            member: Some(member.to_owned()),
            body,
            ..Self::default()
        }
    }
}

/// The kind of a message.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum BusMessageKind {
    Return,
    Error,
    Signal,
    /// Calls, which this client does not answer, and future kinds.
    #[default]
    Other,
}

/// An object of a service on the bus.
#[derive(Debug, Clone, Copy)]
pub struct BusObject<'a> {
    /// The service's well-known name.
    pub service: &'a str,
    /// The object's path.
    pub path: &'a str,
}

/// An outgoing call.
#[derive(Debug, Clone, Copy)]
pub(super) struct BusCall<'a> {
    pub(super) object: BusObject<'a>,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    pub(super) arguments: &'a [Argument<'a>],
}

/// Returns the length of the message that starts in `bytes`; `None` while too few bytes have
/// arrived.
pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>, BusError> {
    let Some(fixed) = bytes.get(..FIXED_BYTES) else {
        return Ok(None);
    };
    if fixed.first() != Some(&ORDER) || fixed.get(3) != Some(&VERSION) {
        return Err(BusError::Malformed(
            "a message with another byte order or version",
        ));
    }
    let mut reader = BusReader::new(fixed);
    reader.take(4)?;
    let (body, _serial, fields) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let fields = u64::from(fields).next_multiple_of(8);
    usize::try_from(u64::from(body) + fields)
        .ok()
        .map(|rest| rest.saturating_add(FIXED_BYTES))
        .filter(|length| *length <= MAX_BYTES)
        .map(Some)
        .ok_or(BusError::Malformed("a message that is too long"))
}

/// Decodes a whole message.
pub(super) fn read(bytes: &[u8]) -> Result<BusMessage, BusError> {
    let mut reader = BusReader::new(bytes);
    let kind = match reader.take(12)?.get(1) {
        Some(2) => BusMessageKind::Return,
        Some(3) => BusMessageKind::Error,
        Some(4) => BusMessageKind::Signal,
        _ => BusMessageKind::Other,
    };
    let mut message = BusMessage {
        kind,
        ..BusMessage::default()
    };
    let mut signature = String::new();
    let fields = reader.values("a(yv)")?.pop().and_then(BusValue::into_items);
    for field in fields.unwrap_or_default() {
        let pair = field.into_items().map(<[BusValue; 2]>::try_from);
        let Some(Ok([BusValue::Unsigned(code), value])) = pair else {
            return Err(BusError::Malformed("a message without a header"));
        };
        match (u8::try_from(code), value) {
            (Ok(PATH), BusValue::Text(path)) => message.path = Some(path),
            (Ok(MEMBER), BusValue::Text(name)) => message.member = Some(name),
            (Ok(ERROR), BusValue::Text(name)) => message.error = Some(name),
            (Ok(REPLY_TO), BusValue::Unsigned(serial)) => message.reply_to = Some(serial),
            (Ok(SIGNATURE), BusValue::Text(types)) => signature = types,
            _ => {}
        }
    }
    reader.align(8)?;
    message.body = reader.values(&signature)?;
    Ok(message)
}

/// Encodes a call. The bus itself rejects invalid content.
pub(super) fn write(call: &BusCall<'_>, serial: u32) -> Vec<u8> {
    let mut body = Vec::new();
    let mut signature = String::new();
    for argument in call.arguments {
        match argument {
            Argument::Text(text) => {
                signature.push('s');
                put_text(&mut body, text);
            }
            Argument::Texts(texts) => {
                signature.push_str("as");
                put_texts(&mut body, texts);
            }
        }
    }
    let mut fields = Vec::new();
    put_field(&mut fields, PATH, b'o', call.object.path);
    put_field(&mut fields, INTERFACE, b's', call.interface);
    put_field(&mut fields, MEMBER, b's', call.member);
    put_field(&mut fields, DESTINATION, b's', call.object.service);
    align(&mut fields, 8);
    // The length of a signature is a single byte.
    let size = u8::try_from(signature.len()).unwrap_or(u8::MAX);
    fields.extend([SIGNATURE, 1, b'g', 0, size]);
    fields.extend(signature.as_bytes());
    fields.push(0);

    let mut bytes = vec![ORDER, CALL, NO_FLAGS, VERSION];
    bytes.extend(size_of(&body));
    bytes.extend(serial.to_ne_bytes());
    bytes.extend(size_of(&fields));
    bytes.extend(fields);
    align(&mut bytes, 8);
    bytes.extend(body);
    bytes
}

const ORDER: u8 = if cfg!(target_endian = "little") {
    b'l'
} else {
    b'B'
};
const CALL: u8 = 1;
const NO_FLAGS: u8 = 0;
const VERSION: u8 = 1;

// Codes of the header fields.
const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const ERROR: u8 = 4;
const REPLY_TO: u8 = 5;
const DESTINATION: u8 = 6;
const SIGNATURE: u8 = 8;

fn put_field(out: &mut Vec<u8>, code: u8, kind: u8, text: &str) {
    align(out, 8);
    out.extend([code, 1, kind, 0]);
    put_text(out, text);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    align(out, 4);
    out.extend(size_of(text.as_bytes()));
    out.extend(text.as_bytes());
    out.push(0);
}

fn put_texts(out: &mut Vec<u8>, texts: &[String]) {
    let mut items = Vec::new();
    for text in texts {
        put_text(&mut items, text);
    }
    align(out, 4);
    out.extend(size_of(&items));
    out.extend(items);
}

fn align(out: &mut Vec<u8>, size: usize) {
    out.resize(out.len().next_multiple_of(size), 0);
}

/// A text longer than `u32::MAX` is also too long for the bus, which closes the connection.
fn size_of(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLED: BusCall<'_> = BusCall {
        object: BusObject {
            service: "org.example",
            path: "/org/example",
        },
        interface: "org.example.Things",
        member: "Find",
        arguments: &[Argument::Text("a"), Argument::Texts(&[])],
    };

    #[test]
    fn what_is_written_can_be_read() {
        let patterns = ["x*".to_owned(), "long pattern".to_owned()];
        let call = BusCall {
            arguments: &[Argument::Text("é"), Argument::Texts(&patterns)],
            ..CALLED
        };
        let bytes = write(&call, 7);
        assert_eq!(length(&bytes).unwrap(), Some(bytes.len()));
        let message = read(&bytes).unwrap();
        assert_eq!(message.kind, BusMessageKind::Other);
        assert_eq!(message.path.as_deref(), Some("/org/example"));
        assert_eq!(message.member.as_deref(), Some("Find"));
        assert_eq!((message.error, message.reply_to), (None, None));
        let text = |text: &str| BusValue::Text(text.to_owned());
        let list = BusValue::Items(vec![text("x*"), text("long pattern")]);
        assert_eq!(message.body, [text("é"), list]);
    }

    #[test]
    fn a_message_is_read_when_all_of_it_is_there() {
        let bytes = write(&CALLED, 1);
        for end in 0..bytes.len() {
            let part = bytes.get(..end).unwrap();
            let expected = (end >= FIXED_BYTES).then_some(bytes.len());
            assert_eq!(length(part).unwrap(), expected);
            assert!(read(part).is_err(), "{end}");
        }
    }

    #[test]
    fn no_byte_of_a_message_can_do_harm() {
        let bytes = write(&CALLED, 1);
        for at in 0..bytes.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = bytes.clone();
                *bytes.get_mut(at).unwrap() = byte;
                let _ = read(&bytes);
            }
        }
    }

    #[test]
    fn a_message_that_is_too_long_is_refused_at_its_beginning() {
        let mut bytes = write(&CALLED, 1);
        let size = u32::try_from(MAX_BYTES).unwrap().to_ne_bytes();
        bytes.splice(4..8, size);
        assert!(length(&bytes).is_err());
        bytes.splice(4..8, [u8::MAX; 4]);
        bytes.splice(12..16, [u8::MAX; 4]);
        assert!(length(&bytes).is_err());
        // Another byte order, or a future version.
        for at in [0, 3] {
            let mut bytes = write(&CALLED, 1);
            *bytes.get_mut(at).unwrap() = b'?';
            assert!(length(&bytes).is_err());
        }
    }
}
