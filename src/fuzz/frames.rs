//! The frames on the helper's socket: however the bytes are split, the same frames are decoded, and none beyond
//! the limit.

use serde_json::Value;

use gatewren_wire::operations::{Decoder, Frame, HelperRequest};

/// First byte: how the rest is split; the rest: bytes from the socket.
pub fn come_out_as_they_went_in(data: &[u8]) {
    let Some((&cut, bytes)) = data.split_first() else {
        return;
    };
    let whole = frames(&[bytes]);
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(cut).max(1)).collect();
    assert_eq!(frames(&pieces), whole, "in pieces of {cut}");
    let mut written = Vec::new();
    for frame in &whole.0 {
        assert!(frame.encode(&mut written).is_ok(), "{frame:?}");
    }
    assert_eq!(frames(&[&written]).0, whole.0, "written and read again");
    if whole.0.iter().all(|frame| !matches!(frame, Frame::End(_))) {
        assert!(bytes.starts_with(&written), "nothing is added or lost");
    }
    request(bytes, &pieces);
}

/// The frames that a decoder returns for the pieces, and whether it then failed.
fn frames(pieces: &[&[u8]]) -> (Vec<Frame>, bool) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
    }
    (frames, false)
}

fn request(bytes: &[u8], pieces: &[&[u8]]) {
    let Some(request) = first_request(&[bytes]) else {
        assert!(first_request(pieces).is_none());
        return;
    };
    assert_eq!(first_request(pieces).as_ref(), Some(&request));
    let written = request.encode().unwrap_or_default();
    assert_eq!(first_request(&[&written]), Some(request.clone()));
    if let Some(container) = request.operation.container() {
        let name = container.as_str();
        let first = name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric());
        let rest = name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        assert!(first && rest && name.len() <= 64, "{name:?}");
    }
    says_nothing_else(bytes, &request);
}

/// Asserts that every member of a request's JSON is read: the sender relies on a member that is ignored.
fn says_nothing_else(bytes: &[u8], request: &HelperRequest) {
    let read = serde_json::to_value(request).unwrap_or_default();
    let payload = bytes.get(5..).unwrap_or_default();
    let mut values = serde_json::Deserializer::from_slice(payload).into_iter::<Value>();
    if let Some(Ok(sent)) = values.next() {
        is_within(&sent, &read);
    }
}

fn is_within(sent: &Value, read: &Value) {
    if let (Value::Object(sent), Value::Object(read)) = (sent, read) {
        for (name, value) in sent {
            let Some(read) = read.get(name) else {
                panic!("{name} was sent and not read");
            };
            is_within(value, read);
        }
    }
}

fn first_request(pieces: &[&[u8]]) -> Option<HelperRequest> {
    let mut decoder = Decoder::default();
    for piece in pieces {
        decoder.push(piece);
        match decoder.next_request() {
            Ok(None) => {}
            Ok(request) => return request,
            Err(_) => return None,
        }
    }
    None
}
