//! The two outputs of a command, read as they come.

use std::collections::VecDeque;
use std::fs::File;
use std::future::pending;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe::Receiver;

use crate::exec::Stream;
use crate::sys::pipe;

use super::sieve::Sieve;

/// The most read at once; a pipe holds no more.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Reads of each output after the end: a pipe holds no more than one, unless the command enlarged it; a
/// writer that could not be killed gets no more.
const LAST_READS: usize = 16;

/// The reading ends.
#[derive(Debug)]
pub struct Outputs {
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    sieve: Option<Sieve>,
    /// What has come through the sieve, a chunk each.
    sifted: VecDeque<Vec<u8>>,
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
            sieve: None,
            sifted: VecDeque::new(),
        };
        Ok((outputs, Writers { stdout, stderr }))
    }

    /// From now on the standard output is only what comes through a sieve.
    pub fn sift(&mut self, sieve: Sieve) {
        self.sieve = Some(sieve);
    }

    /// Waits for the next bytes; for ever once both are closed. Safe to drop while it waits.
    pub async fn next(&mut self) -> (Stream, Vec<u8>) {
        loop {
            if let Some(bytes) = self.sifted.pop_front() {
                return (Stream::Stdout, bytes);
            }
            let which = tokio::select! {
                () = readable(self.stdout.as_ref()) => Stream::Stdout,
                () = readable(self.stderr.as_ref()) => Stream::Stderr,
            };
            let Some(bytes) = self.read(which) else {
                continue;
            };
            match &mut self.sieve {
                Some(sieve) if which == Stream::Stdout => {
                    self.sifted.extend(in_chunks(&sieve.pass(&bytes)));
                }
                _ => return (which, bytes),
            }
        }
    }

    /// What one output still holds, a chunk at a time, now that nobody is waiting for it; closes it.
    ///
    /// Asks the kernel and not the runtime, which may not have heard yet of the last bytes.
    pub fn rest(&mut self, which: Stream) -> impl Iterator<Item = Vec<u8>> + use<> {
        let (mut sieve, mut sifted) = (None, VecDeque::new());
        if which == Stream::Stdout {
            (sieve, sifted) = (self.sieve.take(), std::mem::take(&mut self.sifted));
        }
        let pipe = self.side(which).take();
        let mut pipe = pipe
            .and_then(|pipe| pipe.into_nonblocking_fd().ok())
            .map(File::from);
        let read = (0..LAST_READS).map_while(move |_| {
            let mut bytes = vec![0; CHUNK_BYTES];
            let n = pipe.as_mut()?.read(&mut bytes).ok()?;
            bytes.truncate(n);
            (n > 0).then_some(bytes)
        });
        let read = read.flat_map(move |bytes| match &mut sieve {
            Some(sieve) => in_chunks(&sieve.pass(&bytes)),
            None => vec![bytes],
        });
        sifted.into_iter().chain(read)
    }

    fn read(&mut self, which: Stream) -> Option<Vec<u8>> {
        let side = self.side(which);
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

    fn side(&mut self, which: Stream) -> &mut Option<Receiver> {
        match which {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

fn in_chunks(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.chunks(CHUNK_BYTES).map(<[u8]>::to_vec).collect()
}

async fn readable(side: Option<&Receiver>) {
    match side {
        // An error shows in the read that follows.
        Some(receiver) => drop(receiver.readable().await),
        None => pending().await,
    }
}
