//! Trace context in a request's `_meta` (2026-07-28, basic; W3C Trace Context): the trace that a call is part of.

use super::{json::Params, key};

/// The trace that a call belongs to, as its caller named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceParent {
    /// The whole trace: 32 hexadecimal digits.
    pub trace: String,
    /// The caller's own span: 16 hexadecimal digits.
    pub span: String,
}

impl TraceParent {
    /// Reads `traceparent`. A malformed one is ignored: a broken tracer must not stop work (W3C Trace Context,
    /// 4.3). `tracestate` and `baggage` are not read; they matter only to services that propagate a trace.
    pub fn read(params: &Params) -> Option<Self> {
        let text = params.meta(key::TRACE_PARENT)?.as_str()?;
        let mut parts = text.split('-');
        let [version, trace, span, flags] = [(); 4].map(|()| parts.next().unwrap_or_default());
        // A later version may have more fields after these.
        let sound = is_hex(version, 2) && version != "ff" && is_hex(flags, 2);
        let sound = sound && (version != "00" || parts.next().is_none());
        (sound && is_id(trace, 32) && is_id(span, 16)).then(|| Self {
            trace: trace.to_owned(),
            span: span.to_owned(),
        })
    }
}

/// An id of only zeros is invalid.
fn is_id(text: &str, digits: usize) -> bool {
    is_hex(text, digits) && text.bytes().any(|b| b != b'0')
}

fn is_hex(text: &str, digits: usize) -> bool {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == digits && text.bytes().all(digit)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "00f067aa0ba902b7";

    fn read(value: &Value) -> Option<TraceParent> {
        let params = json!({ "_meta": { "traceparent": value } });
        TraceParent::read(&Params::from(params.as_object().unwrap().clone()))
    }

    #[test]
    fn j10_a_trace_is_read_as_the_w3c_writes_it_and_anything_else_is_none() {
        let good = |text: String| {
            let read = read(&json!(text)).unwrap();
            assert_eq!((read.trace.as_str(), read.span.as_str()), (TRACE, SPAN));
        };
        good(format!("00-{TRACE}-{SPAN}-01"));
        good(format!("cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like"));
        let zeros = "0".repeat(32);
        let capitals = TRACE.to_uppercase();
        for bad in [
            json!(format!("ff-{TRACE}-{SPAN}-01")),
            json!(format!("00-{TRACE}-{SPAN}-01-x")),
            json!(format!("00-{TRACE}-{SPAN}-1")),
            json!(format!("00-{TRACE}-{SPAN}")),
            json!(format!("00-{zeros}-{SPAN}-01")),
            json!(format!("00-{TRACE}-0000000000000000-01")),
            json!(format!("00-{capitals}-{SPAN}-01")),
            json!(format!("00-{TRACE}x-{SPAN}-01")),
            json!(format!(" 00-{TRACE}-{SPAN}-01")),
            json!(""),
            json!(7),
            json!(null),
        ] {
            assert_eq!(read(&bad), None, "{bad}");
        }
        assert_eq!(TraceParent::read(&Params::default()), None);
    }
}
