//! Reads the two outputs of a command as they arrive.

use std::collections::VecDeque;
use std::fs::File;
use std::future::pending;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe::Receiver;

use gatewren_base::sys::pipe;
use gatewren_wire::operations::Stream;

use super::line_filter::LineFilter;

/// The most bytes of one read; a pipe holds no more.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Reads of each output after the command's end. A pipe holds no more than one read returns, unless the command
/// enlarged it. A writer that could not be killed gets no more reads.
const LAST_READS: usize = 16;

/// The read ends of the pipes.
#[derive(Debug)]
pub struct CommandOutputs {
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    filter: Option<LineFilter>,
    /// Output that passed the filter, in chunks.
    filtered: VecDeque<Vec<u8>>,
}

/// The write ends, for the command.
#[derive(Debug)]
pub struct OutputWriters {
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
}

impl CommandOutputs {
    /// Creates two pipes.
    pub fn open() -> io::Result<(Self, OutputWriters)> {
        let (stdout_reader, stdout) = pipe()?;
        let (stderr_reader, stderr) = pipe()?;
        let outputs = Self {
            stdout: Some(Receiver::from_owned_fd(stdout_reader)?),
            stderr: Some(Receiver::from_owned_fd(stderr_reader)?),
            filter: None,
            filtered: VecDeque::new(),
        };
        Ok((outputs, OutputWriters { stdout, stderr }))
    }

    /// From now on, stdout contains only the lines that pass this filter.
    pub fn set_filter(&mut self, filter: LineFilter) {
        self.filter = Some(filter);
    }

    /// Waits for the next bytes; forever once both pipes are closed. Cancel safe.
    pub async fn next(&mut self) -> (Stream, Vec<u8>) {
        loop {
            if let Some(bytes) = self.filtered.pop_front() {
                return (Stream::Stdout, bytes);
            }
            let which = tokio::select! {
                () = readable(self.stdout.as_ref()) => Stream::Stdout,
                () = readable(self.stderr.as_ref()) => Stream::Stderr,
            };
            let Some(bytes) = self.read(which) else {
                continue;
            };
            match &mut self.filter {
                Some(filter) if which == Stream::Stdout => {
                    self.filtered.extend(in_chunks(&filter.pass(&bytes)));
                }
                _ => return (which, bytes),
            }
        }
    }

    /// Returns the rest of one output in chunks, once no task waits for it, and closes it.
    ///
    /// Reads the pipe directly: the runtime may not have been notified of the last bytes yet.
    pub fn rest(&mut self, which: Stream) -> impl Iterator<Item = Vec<u8>> + use<> {
        let (mut filter, mut filtered) = (None, VecDeque::new());
        if which == Stream::Stdout {
            (filter, filtered) = (self.filter.take(), std::mem::take(&mut self.filtered));
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
        let read = read.flat_map(move |bytes| match &mut filter {
            Some(filter) => in_chunks(&filter.pass(&bytes)),
            None => vec![bytes],
        });
        filtered.into_iter().chain(read)
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
        // The following read returns the error.
        Some(receiver) => drop(receiver.readable().await),
        None => pending().await,
    }
}
