//! The bus's socket: limits the length of received messages, and accepts no file descriptors.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use zbus::connection::Socket;
use zbus::connection::socket::{ReadHalf, Split, WriteHalf};
use zbus::export::async_trait::async_trait;

/// Longer messages close the connection; the specification allows sixteen times as much.
/// `ListUnits` needs about 300 bytes a unit.
pub(super) const MAX_BYTES: usize = 8 << 20;

/// A connected socket of the bus.
#[derive(Debug)]
pub(super) struct BusSocket(pub(super) UnixStream);

/// Its half for received messages.
#[derive(Debug)]
pub(super) struct BusReader(OwnedReadHalf);

/// Its half for sent messages.
#[derive(Debug)]
pub(super) struct BusWriter(OwnedWriteHalf);

impl Socket for BusSocket {
    type ReadHalf = BusReader;
    type WriteHalf = BusWriter;

    fn split(self) -> Split<BusReader, BusWriter> {
        let (read, write) = self.0.into_split();
        Split::new(BusReader(read), BusWriter(write))
    }
}

#[async_trait]
impl ReadHalf for BusReader {
    /// The buffer has room for the whole rest of a message.
    async fn recvmsg(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        if buffer.len() > MAX_BYTES {
            let words = "it sent a message that is too long";
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        Ok((self.0.read(buffer).await?, Vec::new()))
    }
}

#[async_trait]
impl WriteHalf for BusWriter {
    async fn sendmsg(&mut self, bytes: &[u8], _fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
        self.0.write(bytes).await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.shutdown().await
    }
}
