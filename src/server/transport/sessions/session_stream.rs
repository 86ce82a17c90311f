//! GET: the stream of a session's notifications, or the rest of a stream that the client lost.

use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::event_id::{EventId, StreamOrigin};
use super::lookup;
use super::replay::{ReplayReader, ReplayWriter};
use super::session::{OpenStream, Session};
use crate::dispatch::{CallContext, WakeIsolated};
use crate::transport::call_stream::forward;
use crate::transport::endpoint::{Endpoint, refuse, sender};
use crate::transport::headers;
use crate::transport::stream::AcceptedForms;
use crate::transport::unresumable_call::UnresumableCall;
use gatewren_gate::guard::{Admitted, Refusal};
use gatewren_gate::http::{ResponseBody, events};
use gatewren_wire::protocol::RpcError;

/// GET: opens a stream on a session.
pub fn open(endpoint: &Arc<Endpoint>, admitted: &Admitted) -> Response<ResponseBody> {
    if !endpoint.engine().streams() {
        return Refusal::not_allowed("POST, DELETE").to_response();
    }
    if !AcceptedForms::read(&admitted.head().headers, true).events {
        let error =
            RpcError::invalid_request("a stream requires the header Accept: text/event-stream");
        return refuse(StatusCode::NOT_ACCEPTABLE, None, &error);
    }
    let found = lookup::check_version(admitted).and_then(|()| lookup::find(endpoint, admitted));
    let session = match found {
        Ok(session) => session,
        Err(none) => return none.to_response(None),
    };
    let place = match endpoint.stream(&sender(admitted)) {
        Ok(place) => place,
        Err(refusal) => return endpoint.reject(&refusal),
    };
    let last = last_event(admitted).filter(|last| session.replay.has_sent(last));
    let Some(connection) = connect(endpoint, &session, admitted, last) else {
        // No events can follow, and only this status is understood by every client. After a stream that just ends,
        // clients reconnect at once; on a stream that stays open, they wait forever.
        return Refusal::not_allowed("POST, DELETE").to_response();
    };
    if connection.feed.is_some() {
        listen(endpoint, &session, &sender(admitted));
    }
    let (endpoint, client) = (endpoint.clone(), sender(admitted));
    events(move |sender| async move {
        let _held = place;
        let version = session.claims.version();
        let mut ended = session.watch_end();
        let Connection { reader, feed } = connection;
        tokio::select! {
            _ = forward(reader, &sender, version, UnresumableCall::new(None)) => {}
            () = WakeIsolated::new(send_events(&endpoint, &session, &client, feed)) => {}
            () = WakeIsolated::new(async {
                tokio::select! {
                    _ = ended.wait_for(|ended| *ended) => {}
                    _ = endpoint.guard().wait_for_new_reach(&client.who) => {}
                }
            }) => {}
        }
    })
}

/// An id that is not from this server resumes nothing. This is not an error: the stream is live from here on.
fn last_event(admitted: &Admitted) -> Option<EventId> {
    let header = headers::single(&admitted.head().headers, "last-event-id");
    header.ok().flatten()?.parse().ok()
}

/// A connection and, unless it is only for the rest of a call, the source of its stream.
struct Connection {
    reader: ReplayReader,
    feed: Option<(ReplayWriter, OpenStream)>,
}

/// Connects to a stream; `None` for the stream of a call if no more events can follow.
fn connect(
    endpoint: &Endpoint,
    session: &Arc<Session>,
    admitted: &Admitted,
    last: Option<EventId>,
) -> Option<Connection> {
    let resumed = last.and_then(|last| session.replay.resume(&last));
    let origin = last.map_or(StreamOrigin::Session, |last| last.origin);
    let (writer, reader) = match (resumed, origin) {
        (Some(stream), StreamOrigin::Call) => {
            let reader = stream.reader;
            return Some(Connection { reader, feed: None });
        }
        (None, StreamOrigin::Call) => return None,
        (Some(stream), StreamOrigin::Session) if stream.is_whole => (stream.writer, stream.reader),
        (resumed, StreamOrigin::Session) => {
            let newest = endpoint.engine().revision(&sender(admitted));
            let missed = last.map(|last| Lost {
                revision: last.revision,
                is_known: resumed.is_some() || session.replay.has_continued(&last),
            });
            let revision = start_revision(session, newest, missed);
            match resumed {
                Some(stream) => (stream.writer, stream.reader),
                None => open_session_stream(session, revision, last),
            }
        }
    };
    let feed = Some((writer, session.open_stream()));
    Some(Connection { reader, feed })
}

fn open_session_stream(
    session: &Session,
    revision: u64,
    last: Option<EventId>,
) -> (ReplayWriter, ReplayReader) {
    let (writer, reader) = session.replay.open(StreamOrigin::Session, revision);
    if let Some(last) = last {
        session.replay.continues(last, &writer);
    }
    (writer, reader)
}

/// A stream that its client resumes, but that has lost some events.
struct Lost {
    /// The revision of the last event that the client has received.
    revision: u64,
    /// Whether the stream, or the one that continues it, was opened since the last restart.
    is_known: bool,
}

/// Resends, from the log of patches, the events that a lost stream has dropped: every change since the revision
/// that the client knows. Of the streams from before a restart, only the first one to reconnect gets them: a later
/// one would repeat the same events. Returns the revision at which the stream begins.
fn start_revision(session: &Session, newest: u64, lost: Option<Lost>) -> u64 {
    // The last reported revision counts and not the newest one, which may be ahead of it.
    let begins = match lost {
        Some(_) => newest,
        None => session.interests.reported_revision().unwrap_or(newest),
    };
    let (first, begun) = session.begin_streams(begins);
    if let Some(lost) = lost
        && (first || lost.is_known || lost.revision >= begun)
    {
        session.interests.rewind(lost.revision);
    }
    session.interests.reported_revision().unwrap_or(newest)
}

/// Starts the listener before the client knows that its stream is open, so that the effects of its next request are
/// not missed. If another stream of the session holds the listener, it exists already.
fn listen(endpoint: &Endpoint, session: &Session, client: &CallContext) {
    if let Ok(mut listener) = session.listener.try_lock() {
        listener.get_or_insert_with(|| session.listen(endpoint.engine(), client));
    }
}

/// Writes the session's events to a stream, while that stream is the active one.
async fn send_events(
    endpoint: &Endpoint,
    session: &Session,
    client: &CallContext,
    feed: Option<(ReplayWriter, OpenStream)>,
) {
    let Some((mut writer, mut stream)) = feed else {
        return std::future::pending().await;
    };
    let engine = endpoint.engine();
    loop {
        stream.carries().await;
        let mut listener = session.listener.lock().await;
        let listener = listener.get_or_insert_with(|| session.listen(engine, client));
        listener.follow(client);
        loop {
            let event = tokio::select! {
                biased;
                () = stream.rests() => break,
                event = listener.next() => event,
            };
            let Some(event) = event else {
                // The server stops: the events so far are sent, then the stream ends.
                writer.end_connection();
                return std::future::pending().await;
            };
            if !session.wants(&event) {
                continue;
            }
            let (text, settled) = event.to_text();
            tokio::select! {
                biased;
                () = writer.say(text, settled) => {}
                // The event is in the buffer already; a slow reader does not delay other streams.
                () = stream.rests() => break,
            }
        }
    }
}
