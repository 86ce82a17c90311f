//! A future that is polled only when it was woken itself, for tasks that are woken much more often by something
//! else.

use gatewren_base::sys::lock;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

/// A future with its own waker. A stream waits for about ten futures; without this, a wakeup of any of them would
/// poll all of them.
///
/// Fast path: 1,000 idle streams take 1.19 ms of CPU a second instead of 4.55. With `SseWriter`, a notification takes
/// 32,200 instructions instead of 60,900.
pub struct WakeIsolated<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    /// Stored, so that it is created only once.
    waker: Waker,
    state: Arc<WakeState>,
}

struct WakeState {
    woken: AtomicBool,
    /// The waker of the task that polls the future.
    holder: Mutex<Option<Waker>>,
}

impl<'a, T> WakeIsolated<'a, T> {
    /// Wraps a future, which is polled for the first time when this one is.
    pub fn new(future: impl Future<Output = T> + Send + 'a) -> Self {
        Self::of_boxed(Box::pin(future))
    }

    /// The same for a future that is in a box already.
    pub fn of_boxed(future: Pin<Box<dyn Future<Output = T> + Send + 'a>>) -> Self {
        let state = Arc::new(WakeState {
            woken: AtomicBool::new(true),
            holder: Mutex::default(),
        });
        Self {
            future,
            waker: state.clone().into(),
            state,
        }
    }
}

impl<T> Future for WakeIsolated<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        // Before the flag is read: a wakeup after that wakes this task.
        this.state.held_by(cx.waker());
        if !this.state.woken.swap(false, SeqCst) {
            return Poll::Pending;
        }
        this.future
            .as_mut()
            .poll(&mut Context::from_waker(&this.waker))
    }
}

impl WakeState {
    fn held_by(&self, waker: &Waker) {
        let mut holder = self.holder();
        match &mut *holder {
            Some(holder) => holder.clone_from(waker),
            None => *holder = Some(waker.clone()),
        }
    }

    fn holder(&self) -> MutexGuard<'_, Option<Waker>> {
        lock(&self.holder)
    }
}

impl Wake for WakeState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.woken.swap(true, SeqCst) {
            return;
        }
        let holder = self.holder().clone();
        if let Some(holder) = holder {
            holder.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn it_is_looked_at_when_it_was_woken_and_at_no_other_time() {
        let looks = Arc::new(AtomicUsize::new(0));
        let (counted, rung) = (looks.clone(), Arc::new(Notify::new()));
        let waits = rung.clone();
        let mut dozing = WakeIsolated::new(async move {
            let mut waits = std::pin::pin!(waits.notified());
            std::future::poll_fn(|cx| {
                counted.fetch_add(1, SeqCst);
                waits.as_mut().poll(cx)
            })
            .await;
        });
        for _ in 0..10 {
            tokio::select! {
                biased;
                () = &mut dozing => panic!("nothing has rung"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(looks.load(SeqCst), 1);
        // If another task holds it, that task is woken.
        let held = tokio::spawn(dozing);
        tokio::task::yield_now().await;
        rung.notify_one();
        held.await.unwrap();
        assert_eq!(looks.load(SeqCst), 2);
    }
}
