//! Trace context (W3C): every accepted trace id is safe in a log line and can be searched for.

use serde_json::{Map, json};

use super::input::text;
use gatewren_wire::protocol::TraceParent;

/// Input: a `traceparent`.
pub fn are_what_the_w3c_has(data: &[u8]) {
    let Some(given) = text(data) else { return };
    let params = Map::from_iter([("_meta".to_owned(), json!({ "traceparent": given }))]);
    let read = TraceParent::read(&params.into());
    let wanted = by_the_book(given);
    let read = read.map(|parent| (parent.trace, parent.span));
    assert_eq!(read, wanted, "{given:?}");
}

/// W3C Trace Context, sections 3.2.2 and 4.3: lower-case digits at fixed positions; additions of a later version
/// follow another dash.
fn by_the_book(text: &str) -> Option<(String, String)> {
    let bytes = text.as_bytes();
    let dashes = [2, 35, 52].map(|at| bytes.get(at)) == [Some(&b'-'); 3];
    let (version, trace) = (text.get(..2)?, text.get(3..35)?);
    let (span, flags, more) = (text.get(36..52)?, text.get(53..55)?, text.get(55..)?);
    let hex = |part: &str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let sound = dashes && [version, trace, span, flags].into_iter().all(hex);
    let ends = more.is_empty() || version != "00" && more.starts_with('-');
    let tells = |part: &str| part.contains(|c| c != '0');
    let told = tells(trace) && tells(span) && version != "ff";
    (sound && ends && told).then(|| (trace.to_owned(), span.to_owned()))
}
