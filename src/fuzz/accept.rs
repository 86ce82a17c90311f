//! `Accept` (RFC 9110 section 12.5.1): media types that the client has excluded are never sent, named ones are.

use hyper::header::ACCEPT;

use super::input::headers;
use gatewren_server::transport::AcceptedForms;

/// Input: header lines.
pub fn says_what_a_client_takes(data: &[u8]) {
    let headers = headers(data);
    let accepts = AcceptedForms::read(&headers, true);
    let lines: Vec<&str> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    if headers.get(ACCEPT).is_none() {
        assert!(
            accepts.json && !accepts.events,
            "no Accept header means JSON"
        );
    }
    // Quoted parameters hide commas; no media type that matters here has any.
    if lines.iter().any(|line| line.contains('"')) {
        return;
    }
    let ranges: Vec<(String, bool)> = lines
        .iter()
        .flat_map(|line| line.split(','))
        .map(range)
        .collect();
    let verdict = |names: &[&str]| {
        let of = |name: &&str| ranges.iter().find(|(range, _)| range == name);
        names.iter().find_map(of).map(|(_, wanted)| *wanted)
    };
    let twice = |name: &str| ranges.iter().filter(|(range, _)| range == name).count() > 1;
    if [
        "text/event-stream",
        "text/*",
        "application/json",
        "application/*",
        "*/*",
    ]
    .into_iter()
    .any(twice)
    {
        return;
    }
    assert_eq!(
        accepts.events,
        verdict(&["text/event-stream", "text/*"]).unwrap_or(false),
        "events: {lines:?}"
    );
    if !lines.is_empty() {
        let stream = ["text/event-stream", "text/*", "*/*"];
        assert_eq!(
            accepts.anything,
            verdict(&stream).unwrap_or(false),
            "{lines:?}"
        );
        let json = ["application/json", "application/*", "*/*"];
        assert_eq!(accepts.json, verdict(&json).unwrap_or(false), "{lines:?}");
    }
}

/// A media range, and whether its weight is above 0.
fn range(item: &str) -> (String, bool) {
    let mut pieces = item.split(';').map(str::trim);
    let name = pieces.next().unwrap_or_default().to_ascii_lowercase();
    let excluded = pieces.any(|parameter| {
        let (name, weight) = parameter.split_once('=').unwrap_or((parameter, ""));
        let zero = ["0", "0.", "0.0", "0.00", "0.000"].contains(&weight);
        name.eq_ignore_ascii_case("q") && zero
    });
    (name, !excluded)
}
