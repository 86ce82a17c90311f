//! The stream of a session's call: it is independent of the connection, so that a client can reconnect to it.

use std::sync::Arc;
use std::time::Duration;

use hyper::Response;
use tokio::sync::watch;
use tokio::time::timeout;

use super::sessions::event_id::StreamOrigin;
use super::sessions::replay::{ReplayReader, ReplayWriter};
use super::sessions::session::Session;
use super::stream::{MessageSink, StreamedReply, pump};
use super::unresumable_call::UnresumableCall;
use super::wire::WireMessage;
use gatewren_gate::http::{EventSender, ResponseBody, StreamClosed, events};
use gatewren_wire::protocol::Version;

/// How long an unread answer is kept for its client to reconnect.
const UNREAD: Duration = Duration::from_mins(15);

/// How long a stream is kept after it was read to its end: what was sent may have been lost on the way.
const READ: Duration = Duration::from_mins(5);

/// The reconnection delay that a client is asked to observe after it has lost a stream. The SDKs for Python and
/// TypeScript try twice and then give up for good, so a restart may take twice as long as this. Nothing is lost
/// meanwhile: what happens is sent when the client is back.
const RETRY: Duration = Duration::from_millis(5_500);

/// Answers a POST with a stream.
pub fn open<N: WireMessage>(
    session: &Arc<Session>,
    begun: StreamedReply<N>,
    unresumable: UnresumableCall,
) -> Response<ResponseBody> {
    let (mut writer, reader) = session.replay.open(StreamOrigin::Call, 0);
    let ended = session.watch_end();
    tokio::spawn(async move {
        tokio::select! {
            () = write(&mut writer, begun) => {}
            () = wait_for_end(ended) => {}
        }
        // On every exit: otherwise the reader of a remaining stream would wait for more.
        writer.forget();
    });
    let version = session.claims.version();
    events(move |sender| async move {
        let _ = forward(reader, &sender, version, unresumable).await;
    })
}

/// Waits until a session has ended. The session of a revoked agent is dropped without an end, because its call
/// still has an answer to send.
async fn wait_for_end(mut ended: watch::Receiver<bool>) {
    if ended.wait_for(|ended| *ended).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn write<N: WireMessage>(writer: &mut ReplayWriter, mut begun: StreamedReply<N>) {
    let _ = pump(&mut begun, writer).await;
    let _ = timeout(UNREAD, writer.read_to_the_end()).await;
    let _ = timeout(READ, writer.forgotten()).await;
}

/// Sends the events of a stream on a connection until there are no more. The first event id makes the call resumable.
pub async fn forward(
    mut reader: ReplayReader,
    sender: &EventSender,
    version: Version,
    mut unresumable: UnresumableCall,
) -> Result<(), StreamClosed> {
    // Older clients treat the empty data of a priming event as a malformed message.
    if version >= Version::V2025_11_25 {
        sender.prime(&reader.first_id(), RETRY).await?;
        unresumable.release();
    } else {
        sender.comment("open").await?;
    }
    while let Some((id, message)) = reader.next().await {
        sender.message(Some(&id), &message).await?;
        unresumable.release();
    }
    // The stream has ended, and the call with it.
    unresumable.release();
    Ok(())
}

impl MessageSink for ReplayWriter {
    async fn say(&mut self, message: Vec<u8>) -> Result<(), StreamClosed> {
        // A disconnected client may reconnect, so this never fails.
        Self::say(self, message.into(), None).await;
        Ok(())
    }

    async fn end(&mut self, last: Option<Vec<u8>>) -> Result<(), StreamClosed> {
        Self::end(self, last);
        Ok(())
    }

    fn has_reader(&self) -> bool {
        Self::has_reader(self)
    }

    fn disconnect(&self) {
        Self::end_connection(self);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Buf as _;
    use http_body_util::BodyExt as _;
    use serde_json::{Map, json};
    use tokio::sync::{mpsc, oneshot};

    use super::super::keepalive::ProgressKeepAlive;
    use super::super::response_end::{ResponseEnd, ResponseFuture};
    use super::super::sessions::session_token::SessionClaims;
    use super::super::stream::{AcceptedForms, PendingReply, ResponseForm, decide};
    use super::super::wire::ClientMessage;
    use super::*;
    use gatewren_wire::protocol::Notification;

    const EVENTS: AcceptedForms = AcceptedForms {
        json: false,
        anything: false,
        events: true,
    };

    fn session() -> Arc<Session> {
        let claims = SessionClaims::new("a", Version::V2025_11_25, &Map::new());
        Session::new("id", claims)
    }

    /// Opens the stream of a call; the caller ends the call with the sender.
    async fn call(
        session: &Arc<Session>,
    ) -> (oneshot::Sender<ResponseEnd>, Response<ResponseBody>) {
        let (notes, receiver) = mpsc::channel(1);
        let progress = Notification::progress(&json!(1), 1.0, None, None);
        notes.send(ClientMessage::Note(progress)).await.unwrap();
        let (finish, finished) = oneshot::channel();
        let answering = PendingReply {
            notes: Some(receiver),
            disconnect: None,
            end: ResponseFuture::when(async move { finished.await.ok() }),
        };
        let keep_alive = ProgressKeepAlive::new(None, Duration::ZERO);
        let ResponseForm::Stream(begun) = decide(answering, EVENTS, keep_alive).await else {
            panic!("it takes events")
        };
        (finish, open(session, begun, UnresumableCall::new(None)))
    }

    fn end() -> ResponseEnd {
        ResponseEnd {
            status: hyper::StatusCode::OK,
            body: b"{}".to_vec().into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_calls_leave_nothing_behind() {
        let session = session();
        for _ in 0..1_000 {
            let (finish, response) = call(&session).await;
            let _ = finish.send(end());
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            assert!(bytes.ends_with(b"data: {}\n\n"), "{bytes:?}");
        }
        assert!(session.replay.holds().0 > 0, "the last may be asked for");
        tokio::time::sleep(READ + RETRY).await;
        assert_eq!(session.replay.holds(), (0, 0));
        assert_eq!(Arc::strong_count(&session), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_comes_back_for_is_forgotten() {
        let session = session();
        let (finish, response) = call(&session).await;
        drop(response);
        let _ = finish.send(end());
        tokio::time::sleep(UNREAD / 2).await;
        assert_eq!(session.replay.holds().0, 1);
        tokio::time::sleep(UNREAD / 2 + 2 * READ).await;
        assert_eq!(session.replay.holds(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_ends_ends_its_streams_and_keeps_nothing() {
        let session = session();
        let (_finish, response) = call(&session).await;
        session.end();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert!(bytes.starts_with(b"id: "), "{bytes:?}");
        assert_eq!(session.replay.holds(), (0, 0));
    }

    /// Enough tries for a race that goes wrong in one of two.
    const TRIES: usize = 64;

    /// Reads a whole response. A stream that never ends would have a comment every 15 seconds.
    async fn all_of(response: Response<ResponseBody>) -> String {
        let all = timeout(Duration::from_hours(1), response.into_body().collect()).await;
        let all = all.expect("the stream never ends").unwrap().to_bytes();
        String::from_utf8(all.to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_answer_of_a_call_arrives_when_its_session_is_dropped_at_the_same_time() {
        for _ in 0..TRIES {
            let session = session();
            let (finish, response) = call(&session).await;
            drop(session);
            let _ = finish.send(end());
            let all = all_of(response).await;
            assert!(all.ends_with("data: {}\n\n"), "{all}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_stream_of_a_call_closes_when_its_session_ended_before_it_opened() {
        for _ in 0..TRIES {
            let session = session();
            session.end();
            let (_finish, response) = call(&session).await;
            assert!(all_of(response).await.starts_with("id: "));
            assert_eq!(session.replay.holds(), (0, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn s6_the_stream_of_a_call_carries_a_comment_every_15_seconds() {
        let session = session();
        let (_finish, response) = call(&session).await;
        let mut body = response.into_body();
        for _ in 0..2 {
            let event = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(event.chunk().starts_with(b"id: "), "{event:?}");
        }
        for _ in 0..3 {
            let began = tokio::time::Instant::now();
            let comment = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(comment.chunk(), b": keep-alive\n\n");
            // At a keep-alive tick, the last one within those 15 seconds.
            assert!(matches!(began.elapsed().as_secs(), 14 | 15));
        }
    }
}
