//! Notifies the writing thread when another process may have written, based on file system events.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use gatewren_base::sys::{FileWaiter, FileWaker};

use super::job::WriterOrder;
use super::queue::OrderSender;

/// The delay between a write and the first check. A commit becomes visible only when the disk has it, so each
/// further check doubles the delay, up to [`SELDOM`]. Our own writes cause events too: the delay combines many of
/// them.
const SOON: Duration = Duration::from_millis(250);

/// The interval of checks without an event, in case an event was lost.
pub(super) const SELDOM: Duration = Duration::from_secs(30);

/// A thread that waits for writes to the WAL file. Dropping this ends it.
pub(super) struct WalWatch {
    waker: Option<FileWaker>,
    thread: Option<JoinHandle<()>>,
}

impl WalWatch {
    /// Starts the thread. The WAL file must exist already.
    pub(super) fn start(vault: &Path, orders: OrderSender) -> io::Result<Self> {
        let (mut waiter, waker) = FileWaiter::new()?;
        let mut log = vault.as_os_str().to_owned();
        log.push("-wal");
        waiter.watch(Path::new(&log))?;
        let thread = thread::Builder::new()
            .name("vault-watch".to_owned())
            .spawn(move || watch(&waiter, &orders))?;
        Ok(Self {
            waker: Some(waker),
            thread: Some(thread),
        })
    }
}

impl Drop for WalWatch {
    fn drop(&mut self) {
        self.waker = None;
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn watch(waiter: &FileWaiter, orders: &OrderSender) {
    // The pending order holds a clone. While it is pending, a second order is not needed.
    let token = Arc::new(());
    // Another process may have written before the watch began.
    let mut pause = SOON;
    loop {
        match wait_for_event(waiter, pause) {
            Ok(WatchEvent::End) => return,
            Ok(WatchEvent::Write) => pause = SOON,
            Ok(WatchEvent::Nothing) => {}
            Err(cause) => {
                tracing::error!(%cause, "watching the vault failed: writes of other processes are noticed late from now on");
                return;
            }
        }
        if Arc::strong_count(&token) == 1 {
            // Fails only when the writing thread has ended, and then this thread is about to end too.
            let _ = orders.put(WriterOrder::Look(Arc::clone(&token)));
        }
        pause = (pause * 2).min(SELDOM);
    }
}

enum WatchEvent {
    End,
    Write,
    Nothing,
}

fn wait_for_event(waiter: &FileWaiter, pause: Duration) -> io::Result<WatchEvent> {
    let woken = waiter.wait(pause)?;
    let end = woken.called || (woken.written && waiter.rest(SOON)?);
    Ok(match (end, woken.written) {
        (true, _) => WatchEvent::End,
        (false, true) => WatchEvent::Write,
        (false, false) => WatchEvent::Nothing,
    })
}
