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
    let resumes = last_event(admitted).filter(|last| session.replay.gave(last));
    let Some(connection) = connect(endpoint, &session, admitted, resumes) else {
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
    resumes: Option<EventId>,
) -> Option<Connection> {
    let is_whole = resumes.is_some_and(|last| session.replay.has_all_behind(&last));
    let known = resumes.and_then(|last| session.replay.resume(&last));
    let origin = resumes.map_or(Origin::Session, |last| last.origin);
    let (writer, reader) = match (known, origin) {
        (Some((_, reader)), Origin::Call) => {
            return Some(Connection { reader, feed: None });
        }
        (None, Origin::Call) => return None,
        (Some(known), Origin::Session) if is_whole => known,
        (known, Origin::Session) => {
            let newest = endpoint.engine().revision(&sender(admitted));
            let revision = go_back(session, newest, resumes);
            known.unwrap_or_else(|| session.replay.open(Origin::Session, revision))
        }
    };
    let feed = Some((writer, session.open_stream()));
    Some(Connection { reader, feed })
}

/// What is not kept any more of a stream that its client comes back to, the log of patches says, from the
/// revision on up to which that client was told of every change. Also after a restart, but then only to the
/// first stream: what it is told, a later one would be told again. Where the stream begins comes back.
fn go_back(session: &Session, newest: u64, resumes: Option<EventId>) -> u64 {
    let (first, begun) = session.begin_streams(newest);
    if let Some(last) = resumes
        && (first || last.revision >= begun)
    {
        session.interests.rewind(last.revision);
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
