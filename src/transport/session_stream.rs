//! The GET stream of a session: what it is subscribed to, resumable by revision.

use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::{
    endpoint::{Endpoint, refuse},
    headers, lookup,
    session::{OpenStream, Session},
    stream::Accepts,
};
use crate::dispatch::Listener;
use crate::guard::Admitted;
use crate::http::{Body, Closed, EventSender, events};
use crate::protocol::{RpcError, Version};

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
    let place = match endpoint.stream(admitted) {
        Ok(place) => place,
        Err(refusal) => return endpoint.turn_away(&refusal),
    };
    // An id that is not ours resumes nothing, which is no error: the stream is live from here on.
    let last = headers::single(&admitted.head().headers, "last-event-id")
        .ok()
        .flatten();
    if let Some(revision) = last.and_then(revision_of) {
        session.interests.rewind(revision);
    }
    let engine = endpoint.engine();
    let listener = Listener::new(
        &engine.catalog,
        session.interests.clone(),
        engine.stopping(),
    );
    let (endpoint, who) = (endpoint.clone(), admitted.who().clone());
    let stream = session.open_stream();
    let ids = EventIds {
        revision: engine.revision(),
        stream: stream.id(),
        count: 0,
    };
    events(move |sender| async move {
        let _held = place;
        tokio::select! {
            _ = carry(&session, stream, listener, (sender, ids)) => {}
            () = endpoint.guard().expelled(&who) => {}
        }
    })
}

async fn carry(
    session: &Session,
    mut stream: OpenStream,
    mut listener: Listener,
    (sender, mut ids): (EventSender, EventIds),
) -> Result<(), Closed> {
    // Older clients take the empty data of a priming event for a broken message.
    if session.claims.version() >= Version::V2025_11_25 {
        sender.prime(&ids.next(None)).await?;
    } else {
        sender.comment("open").await?;
    }
    let mut ended = session.ended();
    loop {
        tokio::select! {
            _ = ended.wait_for(|ended| *ended) => return Ok(()),
            () = stream.carries() => {}
        }
        let event = tokio::select! {
            _ = ended.wait_for(|ended| *ended) => return Ok(()),
            () = stream.rests() => continue,
            event = listener.next() => event,
        };
        let Some(event) = event else { return Ok(()) };
        let note = event.to_notification();
        sender
            .message(Some(&ids.next(note.revision)), &note.write())
            .await?;
    }
}

/// Event ids: the revision to resume from, then stream and count, which make each of them its own.
struct EventIds {
    revision: u64,
    stream: u64,
    count: u64,
}

impl EventIds {
    fn next(&mut self, revision: Option<u64>) -> String {
        self.revision = revision.unwrap_or(self.revision);
        self.count += 1;
        format!("{}.{}.{}", self.revision, self.stream, self.count)
    }
}

fn revision_of(id: &str) -> Option<u64> {
    id.split_once('.')?.0.parse().ok()
}
