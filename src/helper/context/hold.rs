//! A command that is prepared but must not run before its caller releases it.

use std::io;

use tokio::net::UnixStream;

use gatewren_wire::operations::{AuditHead, Decoder, Release};

/// Bytes per read. A release is about a hundred bytes.
const READ_BYTES: usize = 1024;

/// Whether an operation waits for the release by its caller.
#[derive(Debug, Default)]
pub struct Hold(HoldState);

#[derive(Debug, Default)]
enum HoldState {
    /// It was never held.
    #[default]
    Free,
    /// Contains the received part of the release.
    Held(Decoder),
    Released(Release),
    /// The caller has disconnected, or has sent something else. It is never released.
    Lost,
}

impl Hold {
    /// Holds an operation.
    pub fn until_release() -> Self {
        Self(HoldState::Held(Decoder::default()))
    }

    /// Waits for the release. Returns true at once if the operation is not held, and false if the caller has
    /// disconnected or sent something else. Cancel safe: no byte is lost when the future is dropped.
    pub async fn released(&mut self, caller: &UnixStream) -> bool {
        while let HoldState::Held(decoder) = &mut self.0 {
            if let Some(next) = receive(decoder, caller).await {
                self.0 = next;
            }
        }
        !matches!(self.0, HoldState::Lost)
    }

    /// Returns the audit's head that came with the release.
    pub fn audit(&self) -> Option<&AuditHead> {
        match &self.0 {
            HoldState::Released(release) => release.audit.as_ref(),
            _ => None,
        }
    }
}

/// Reads once, and returns the new state if it changes.
async fn receive(decoder: &mut Decoder, caller: &UnixStream) -> Option<HoldState> {
    let readable = caller.readable().await;
    // Only now: the futures of all operations would have room for it.
    let mut bytes = [0; READ_BYTES];
    match readable.and_then(|()| caller.try_read(&mut bytes)) {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => None,
        Err(_) | Ok(0) => Some(HoldState::Lost),
        Ok(count) => {
            decoder.push(bytes.get(..count)?);
            match decoder.next_release() {
                Ok(None) => None,
                Ok(Some(release)) if decoder.is_empty() => Some(HoldState::Released(release)),
                // Bytes after a release count as a disconnect, as they do after a request.
                Ok(Some(_)) | Err(_) => Some(HoldState::Lost),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt as _;
    use tokio::time::timeout;

    use super::*;

    fn head() -> AuditHead {
        AuditHead::new(3, "0a".repeat(32)).unwrap()
    }

    #[tokio::test]
    async fn what_was_never_held_waits_for_nothing() {
        let (_front, caller) = UnixStream::pair().unwrap();
        assert!(Hold::default().released(&caller).await);
    }

    #[tokio::test]
    async fn a_release_may_come_in_parts_and_between_two_waits() {
        let (mut front, caller) = UnixStream::pair().unwrap();
        let mut hold = Hold::until_release();
        let release = Release {
            audit: Some(head()),
        };
        let bytes = release.encode().unwrap();
        let (first, rest) = bytes.split_at(7);
        front.write_all(first).await.unwrap();
        let early = timeout(Duration::from_millis(50), hold.released(&caller)).await;
        assert!(early.is_err() && hold.audit().is_none());
        front.write_all(rest).await.unwrap();
        assert!(hold.released(&caller).await);
        assert_eq!(hold.audit(), Some(&head()));
    }

    #[tokio::test]
    async fn nothing_else_releases() {
        let release = Release { audit: None }.encode().unwrap();
        let twice = [release.clone(), release.clone()].concat();
        let mut request = release.clone();
        request[0] = 1;
        let mut unread = release.clone();
        unread[5] = b'[';
        let long = [&release[..1], &[0xff; 4]].concat();
        for bytes in [&twice[..], &request, &unread, &long, &release[..4], b"x"] {
            let (mut front, caller) = UnixStream::pair().unwrap();
            let mut hold = Hold::until_release();
            front.write_all(bytes).await.unwrap();
            drop(front);
            assert!(!hold.released(&caller).await, "{bytes:?}");
            assert!(!hold.released(&caller).await, "{bytes:?}: for ever");
        }
    }
}
