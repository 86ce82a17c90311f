//! The stream of a session's call: it runs apart from the connection that asked for it, and waits for the next.

use std::sync::Arc;
use std::time::Duration;

use hyper::Response;
use tokio::time::timeout;

use super::{
    event_id::Origin,
    replay::{Reader, Writer},
    session::Session,
    stream::{Begun, Out, pump},
    wire::Wire,
};
use crate::http::{Body, Closed, EventSender, events};
use crate::protocol::Version;

/// An answer that nobody has read waits so long for its client to come back.
const UNREAD: Duration = Duration::from_mins(15);

/// What has been read to its end is kept so long: what we have sent may still have been lost on the way.
const READ: Duration = Duration::from_mins(1);

/// So long a client that lost a stream is asked to wait before it comes back.
const RETRY: Duration = Duration::from_secs(1);

/// Answers a POST with a stream. `held` lives as long as the call does, whoever reads it.
pub fn open<N: Wire, H: Send + 'static>(
    session: &Arc<Session>,
    begun: Begun<N>,
    held: H,
) -> Response<Body> {
    let (writer, reader) = session.replay.open(Origin::Call, 0);
    let mut ended = session.ended();
    tokio::spawn(async move {
        tokio::select! {
            () = write(writer, begun, held) => {}
            _ = ended.wait_for(|ended| *ended) => {}
        }
    });
    let version = session.claims.version();
    events(move |sender| async move {
        let _ = forward(reader, &sender, version).await;
    })
}

async fn write<N: Wire, H: Send>(mut writer: Writer, begun: Begun<N>, held: H) {
    let _ = pump(begun, &mut writer).await;
    drop(held);
    let _ = timeout(UNREAD, writer.read_to_the_end()).await;
    tokio::time::sleep(READ).await;
    writer.forget();
}

/// Sends what a connection has to read, for as long as there is something.
pub async fn forward(
    mut reader: Reader,
    sender: &EventSender,
    version: Version,
) -> Result<(), Closed> {
    // Older clients take the empty data of a priming event for a broken message.
    if version >= Version::V2025_11_25 {
        sender.prime(&reader.first_id(), RETRY).await?;
    } else {
        sender.comment("open").await?;
    }
    while let Some((id, message)) = reader.next().await {
        sender.message(Some(&id), &message).await?;
    }
    Ok(())
}

impl Out for Writer {
    async fn say(&mut self, message: Vec<u8>) -> Result<(), Closed> {
        // A client that is gone may come back, so there is always somebody to say it to.
        Self::say(self, message, None).await;
        Ok(())
    }

    async fn end(&mut self, last: Option<Vec<u8>>) -> Result<(), Closed> {
        Self::end(self, last);
        Ok(())
    }

    fn is_heard(&self) -> bool {
        Self::is_heard(self)
    }

    fn hang_up(&self) {
        Self::hang_up(self);
    }
}
