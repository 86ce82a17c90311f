//! Writes a job's output to disk, and passes it to the caller that started the job while it listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use gatewren_wire::operations::{Frame, Stream};

use super::job_log::JobLog;

/// How long a listener that does not read may block a job. After that it is dropped.
const LISTENER_TIME: Duration = Duration::from_secs(5);

/// The amount of output of a running job, readable by others.
#[derive(Debug, Default)]
pub struct OutputCounters {
    written: AtomicU64,
    lost: AtomicU64,
}

impl OutputCounters {
    /// Returns the bytes written and the bytes that could not be written.
    pub fn now(&self) -> (u64, u64) {
        (
            self.written.load(Ordering::Acquire),
            self.lost.load(Ordering::Acquire),
        )
    }
}

/// The sink of a job's output, and the receiver of its cancellation.
#[derive(Debug)]
pub struct JobOutputSink {
    log: Option<JobLog>,
    printed: Arc<OutputCounters>,
    cancelled: watch::Receiver<bool>,
    listener: Option<mpsc::Sender<Frame>>,
}

impl JobOutputSink {
    /// Creates a sink that writes to `log` and sends to `listener`.
    pub fn new(
        log: JobLog,
        printed: Arc<OutputCounters>,
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

    /// Stores output and sends it to the listener.
    pub async fn put(&mut self, which: Stream, bytes: Vec<u8>) {
        let (log, bytes) = (self.log.take(), Arc::new(bytes));
        let to_write = Arc::clone(&bytes);
        // On a blocking thread: a slow disk must not block other callers.
        let written = tokio::task::spawn_blocking(move || {
            let mut log = log?;
            log.write(&to_write);
            Some(log)
        });
        self.log = written.await.ok().flatten();
        if let Some(log) = &self.log {
            self.printed
                .written
                .store(log.written_bytes(), Ordering::Release);
            self.printed.lost.store(log.lost_bytes(), Ordering::Release);
        }
        let bytes = Arc::try_unwrap(bytes).unwrap_or_else(|shared| shared.to_vec());
        self.send_to_listener(Frame::Output(which, bytes)).await;
    }

    /// Waits until the job is cancelled.
    pub fn cancelled(&self) -> impl Future<Output = ()> + use<> {
        let mut cancelled = self.cancelled.clone();
        async move {
            if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns whether the caller that started the job still listens.
    pub fn has_listener(&self) -> bool {
        self.listener
            .as_ref()
            .is_some_and(|listener| !listener.is_closed())
    }

    async fn send_to_listener(&mut self, frame: Frame) {
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
