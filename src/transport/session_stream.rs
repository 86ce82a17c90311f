//! GET: the stream of a session, on which it is told what it is subscribed to, or the rest of a stream that was lost.

use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::{
    call_stream::forward,
    dozing::Dozing,
    endpoint::{Endpoint, refuse, sender},
    event_id::{EventId, Origin},
    headers, lookup,
    replay::{Reader, Writer},
    session::{OpenStream, Session},
    stream::Accepts,
};
use crate::dispatch::Context;
use crate::guard::{Admitted, Refusal};
use crate::http::{Body, events};
use crate::protocol::RpcError;

/// GET: opens a stream on a session.
pub fn open(endpoint: &Arc<Endpoint>, admitted: &Admitted) -> Response<Body> {
    if !Accepts::read(&admitted.head().headers).events {
        let error =
            RpcError::invalid_request("a stream needs the header Accept: text/event-stream");
        return refuse(StatusCode::NOT_ACCEPTABLE, None, &error);
    }
    let found = lookup::check_version(admitted).and_then(|()| lookup::find(endpoint, admitted));
    let session = match found {
        Ok(session) => session,
        Err(none) => return none.to_response(None),
    };
    let place = match endpoint.stream(&sender(admitted)) {
        Ok(place) => place,
        Err(refusal) => return endpoint.turn_away(&refusal),
    };
    let last = last_event(admitted).filter(|last| session.replay.gave(last));
    let Some(connection) = connect(endpoint, &session, admitted, last) else {
        // Nothing can follow, and only this says so to every client: after a stream that just ends they come
        // back at once, and on one that stays open they wait for ever.
        return Refusal::not_allowed("POST, DELETE").to_response();
    };
    if connection.feed.is_some() {
        listen(endpoint, &session, &sender(admitted));
    }
    let (endpoint, client) = (endpoint.clone(), sender(admitted));
    events(move |sender| async move {
        let _held = place;
        let version = session.claims.version();
        let mut ended = session.ended();
        let Connection { reader, feed } = connection;
        tokio::select! {
            _ = forward(reader, &sender, version) => {}
            () = Dozing::new(tell(&endpoint, &session, &client, feed)) => {}
            () = Dozing::new(async {
                tokio::select! {
                    _ = ended.wait_for(|ended| *ended) => {}
                    () = endpoint.guard().displaced(&client.who) => {}
                }
            }) => {}
        }
    })
}

/// An id that is not ours resumes nothing, which is no error: the stream is live from here on.
fn last_event(admitted: &Admitted) -> Option<EventId> {
    let header = headers::single(&admitted.head().headers, "last-event-id");
    header.ok().flatten()?.parse().ok()
}

/// A connection and, unless it is only for the rest of a call, what its stream carries.
struct Connection {
    reader: Reader,
    feed: Option<(Writer, OpenStream)>,
}

/// `None` for the stream of a call on which nothing more can come.
fn connect(
    endpoint: &Endpoint,
    session: &Arc<Session>,
    admitted: &Admitted,
    last: Option<EventId>,
) -> Option<Connection> {
    let resumed = last.and_then(|last| session.replay.resume(&last));
    let origin = last.map_or(Origin::Session, |last| last.origin);
    let (writer, reader) = match (resumed, origin) {
        (Some(stream), Origin::Call) => {
            let reader = stream.reader;
            return Some(Connection { reader, feed: None });
        }
        (None, Origin::Call) => return None,
        (Some(stream), Origin::Session) if stream.is_whole => (stream.writer, stream.reader),
        (resumed, Origin::Session) => {
            let newest = endpoint.engine().revision(&sender(admitted));
            let missed = last.map(|last| Lost {
                revision: last.revision,
                is_known: resumed.is_some(),
            });
            let revision = go_back(session, newest, missed);
            match resumed {
                Some(stream) => (stream.writer, stream.reader),
                None => session.replay.open(Origin::Session, revision),
            }
        }
    };
    let feed = Some((writer, session.open_stream()));
    Some(Connection { reader, feed })
}

/// A stream that its client comes back to, of which something is no longer kept.
struct Lost {
    /// The revision of the last event that the client has seen.
    revision: u64,
    /// Whether the stream was opened since the last restart, and is not forgotten.
    is_known: bool,
}

/// Tells the client again, from the log of patches, what is no longer kept of its lost stream: every change since the
/// revision that it knows. A stream from before a restart is told only if it is the first to come back: a later one
/// would be told what the first was told. Returns the revision at which the stream begins.
fn go_back(session: &Session, newest: u64, lost: Option<Lost>) -> u64 {
    // What was told up to here counts, not the newest revision: that may be ahead of it.
    let begins = match lost {
        Some(_) => newest,
        None => session.interests.heard().unwrap_or(newest),
    };
    let (first, begun) = session.begin_streams(begins);
    if let Some(lost) = lost
        && (first || lost.is_known || lost.revision >= begun)
    {
        session.interests.rewind(lost.revision);
    }
    session.interests.heard().unwrap_or(newest)
}

/// Listens from now on, before the client hears that its stream is open: what it does next, it hears of. Where
/// another stream of the session holds the listener there is one already.
fn listen(endpoint: &Endpoint, session: &Session, client: &Context) {
    if let Ok(mut listener) = session.listener.try_lock() {
        listener.get_or_insert_with(|| session.listen(endpoint.engine(), client));
    }
}

/// Puts what the session is to be told on a stream, while that stream carries.
async fn tell(
    endpoint: &Endpoint,
    session: &Session,
    client: &Context,
    feed: Option<(Writer, OpenStream)>,
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
        let event = tokio::select! {
            biased;
            () = stream.rests() => continue,
            event = listener.next() => event,
        };
        let Some(event) = event else {
            // The server stops: what has been said is sent, then the stream ends.
            writer.hang_up();
            return std::future::pending().await;
        };
        if !session.wants(&event) {
            continue;
        }
        let note = event.to_notification();
        tokio::select! {
            biased;
            () = writer.say(note.write(), note.revision) => {}
            // It is said; a reader that is slow to hear it keeps no other stream waiting.
            () = stream.rests() => {}
        }
    }
}
