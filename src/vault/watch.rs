//! Tells the writing thread when another process may have written, by hints of the kernel.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use crate::sys::{Waiter, Waker};

use super::job::Order;
use super::queue::Queue;

/// The wait between a write and the first look. What is written can be seen only later, when the disk has it, so
/// each further look comes after twice the wait, up to [`SELDOM`]; and our own writes are hints too, of which so
/// many as a busy server makes are one.
const SOON: Duration = Duration::from_millis(250);

/// How often to look without a hint, should one be lost.
pub(super) const SELDOM: Duration = Duration::from_secs(30);

/// A thread that waits for writes to the vault's log of the file system; it ends when this is dropped.
pub(super) struct Watch {
    waker: Option<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts to watch; the log must be there already.
    pub(super) fn start(vault: &Path, orders: Queue) -> io::Result<Self> {
        let (mut waiter, waker) = Waiter::new()?;
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

impl Drop for Watch {
    fn drop(&mut self) {
        self.waker = None;
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn watch(waiter: &Waiter, orders: &Queue) {
    // Held by the order that was not obeyed yet: a second one would say nothing new.
    let told = Arc::new(());
    // Somebody may have written before the watch began.
    let mut pause = SOON;
    loop {
        match heard(waiter, pause) {
            Ok(Heard::End) => return,
            Ok(Heard::Write) => pause = SOON,
            Ok(Heard::Nothing) => {}
            Err(cause) => {
                tracing::error!(%cause, "writes of other processes to the vault are seen late from now on");
                return;
            }
        }
        if Arc::strong_count(&told) == 1 {
            // The writing thread is gone only when this one is about to end.
            let _ = orders.put(Order::Look(Arc::clone(&told)));
        }
        pause = (pause * 2).min(SELDOM);
    }
}

enum Heard {
    End,
    Write,
    Nothing,
}

fn heard(waiter: &Waiter, pause: Duration) -> io::Result<Heard> {
    let woken = waiter.wait(pause)?;
    let end = woken.called || (woken.written && waiter.rest(SOON)?);
    Ok(match (end, woken.written) {
        (true, _) => Heard::End,
        (false, true) => Heard::Write,
        (false, false) => Heard::Nothing,
    })
}
