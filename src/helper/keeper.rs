//! Takes a job's output: onto the disk, and to whoever began the job for as long as they listen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::exec::{Frame, Stream};

use super::job_log::JobLog;

/// How long a listener that does not read may hold up a job; then it hears nothing more.
const LISTENER_TIME: Duration = Duration::from_secs(5);

/// What a job has printed, as others see it while it runs.
#[derive(Debug, Default)]
pub struct Printed {
    written: AtomicU64,
    lost: AtomicU64,
}

impl Printed {
    /// Bytes that were printed, and bytes that the disk did not take.
    pub fn now(&self) -> (u64, u64) {
        (
            self.written.load(Ordering::Acquire),
            self.lost.load(Ordering::Acquire),
        )
    }
}

/// The way of a job's output, and of the order to end it.
#[derive(Debug)]
pub struct Keeper {
    log: Option<JobLog>,
    printed: Arc<Printed>,
    cancelled: watch::Receiver<bool>,
    listener: Option<mpsc::Sender<Frame>>,
}

impl Keeper {
    /// Writes into `log`, and tells `listener`.
    pub fn new(
        log: JobLog,
        printed: Arc<Printed>,
        cancelled: watch::Receiver<bool>,
        listener: mpsc::Sender<Frame>,
    ) -> Self {
        Self {
            log: Some(log),
            printed,
            cancelled,
            listener: Some(listener),
        }
    }

    /// Takes what was printed.
    pub async fn put(&mut self, which: Stream, bytes: Vec<u8>) {
        let (log, bytes) = (self.log.take(), Arc::new(bytes));
        let to_write = Arc::clone(&bytes);
        // On a thread of its own, since a disk may be slow, and the helper has others to serve.
        let written = tokio::task::spawn_blocking(move || {
            let mut log = log?;
            log.write(&to_write);
            Some(log)
        });
        self.log = written.await.ok().flatten();
        if let Some(log) = &self.log {
            self.printed.written.store(log.written(), Ordering::Release);
            self.printed.lost.store(log.lost(), Ordering::Release);
        }
        let bytes = Arc::try_unwrap(bytes).unwrap_or_else(|shared| shared.to_vec());
        self.tell(Frame::Output(which, bytes)).await;
    }

    /// Waits for the order to end.
    pub fn cancelled(&self) -> impl Future<Output = ()> + use<> {
        let mut cancelled = self.cancelled.clone();
        async move {
            if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn tell(&mut self, frame: Frame) {
        if let Some(listener) = &self.listener
            && !matches!(
                timeout(LISTENER_TIME, listener.send(frame)).await,
                Ok(Ok(()))
            )
        {
            self.listener = None;
        }
    }
}
