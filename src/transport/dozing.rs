//! A future that is looked at only when something has woken it: what waits beside it wakes the same task much oftener.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A future with a waker of its own. A stream waits for some ten things; what another of them wakes its task for does
/// not have all of these looked at again.
pub struct Dozing<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    /// Kept, so that it is made once.
    waker: Waker,
    bed: Arc<Bed>,
}

struct Bed {
    woken: AtomicBool,
    /// Who holds the future.
    holder: Mutex<Option<Waker>>,
}

impl<'a, T> Dozing<'a, T> {
    /// This future, which is looked at for the first time when this is.
    pub fn new(future: impl Future<Output = T> + Send + 'a) -> Self {
        let bed = Arc::new(Bed {
            woken: AtomicBool::new(true),
            holder: Mutex::default(),
        });
        Self {
            future: Box::pin(future),
            waker: bed.clone().into(),
            bed,
        }
    }
}

impl<T> Future for Dozing<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        // Before the look at what has come: what comes after it wakes this holder.
        this.bed.held_by(cx.waker());
        if !this.bed.woken.swap(false, SeqCst) {
            return Poll::Pending;
        }
        this.future
            .as_mut()
            .poll(&mut Context::from_waker(&this.waker))
    }
}

impl Bed {
    fn held_by(&self, waker: &Waker) {
        let mut holder = self.holder();
        match &mut *holder {
            Some(holder) => holder.clone_from(waker),
            None => *holder = Some(waker.clone()),
        }
    }

    fn holder(&self) -> MutexGuard<'_, Option<Waker>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bed {
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
        let mut dozing = Dozing::new(async move {
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
        // Held by another task, it wakes that one.
        let held = tokio::spawn(dozing);
        tokio::task::yield_now().await;
        rung.notify_one();
        held.await.unwrap();
        assert_eq!(looks.load(SeqCst), 2);
    }
}
