//! The two outputs of a command, read as they come.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe::Receiver;

use crate::exec::Stream;
use crate::sys::pipe;

/// The most read at once; a pipe holds no more.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// The reading ends.
#[derive(Debug)]
pub struct Outputs {
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
}

/// The writing ends, for the command.
#[derive(Debug)]
pub struct Writers {
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
}

impl Outputs {
    /// Two fresh pipes.
    pub fn open() -> io::Result<(Self, Writers)> {
        let (stdout_reader, stdout) = pipe()?;
        let (stderr_reader, stderr) = pipe()?;
        let outputs = Self {
            stdout: Some(Receiver::from_owned_fd(stdout_reader)?),
            stderr: Some(Receiver::from_owned_fd(stderr_reader)?),
        };
        Ok((outputs, Writers { stdout, stderr }))
    }

    /// Waits for the next bytes; for ever once both are closed. Safe to drop while it waits.
    pub async fn next(&mut self) -> (Stream, Vec<u8>) {
        loop {
            let which = tokio::select! {
                () = readable(self.stdout.as_ref()) => Stream::Stdout,
                () = readable(self.stderr.as_ref()) => Stream::Stderr,
            };
            if let Some(bytes) = self.read(which) {
                return (which, bytes);
            }
        }
    }

    /// What is there now of one output; `None` when nothing is, or when it is closed.
    pub fn read(&mut self, which: Stream) -> Option<Vec<u8>> {
        let side = match which {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let mut bytes = vec![0; CHUNK_BYTES];
        match side.as_mut()?.try_read(&mut bytes) {
            Ok(n) if n > 0 => {
                bytes.truncate(n);
                return Some(bytes);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            _ => *side = None,
        }
        None
    }
}

async fn readable(side: Option<&Receiver>) {
    match side {
        // An error shows in the read that follows.
        Some(receiver) => drop(receiver.readable().await),
        None => pending().await,
    }
}
