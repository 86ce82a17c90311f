//! Asks about several containers at the same time, within a limit that all calls share.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::{Semaphore, SemaphorePermit};

/// The most items of one list that are worked on at the same time.
const AT_ONCE: usize = 4;

/// The extra places that all lists share; each list also has one of its own. The helper limits the concurrent operations
/// of an agent, so concurrent calls must not exceed that limit together.
static FURTHER_PLACES: Semaphore = Semaphore::const_new(6);

/// Work that has begun, with the index of its item.
struct BegunWork<'p, W> {
    index: usize,
    work: Pin<Box<W>>,
    _place: Option<SemaphorePermit<'p>>,
}

/// Runs the work of each item, at most four at the same time, begun in the order of the items. Returns the results in
/// that order. Dropping the future stops all of them.
pub async fn side_by_side<I, W: Future>(items: Vec<I>, work: impl Fn(I) -> W) -> Vec<W::Output> {
    within(&FURTHER_PLACES, items, work).await
}

async fn within<I, W: Future>(
    places: &Semaphore,
    items: Vec<I>,
    work: impl Fn(I) -> W,
) -> Vec<W::Output> {
    let mut waiting = items.into_iter().enumerate();
    let mut running: Vec<BegunWork<'_, W>> = Vec::new();
    let mut results = BTreeMap::new();
    poll_fn(|context| {
        loop {
            begin_further(&mut running, places, || {
                let (index, item) = waiting.next()?;
                Some((index, work(item)))
            });
            if running.is_empty() {
                return Poll::Ready(());
            }
            if !finish_some(&mut running, &mut results, context) {
                return Poll::Pending;
            }
        }
    })
    .await;
    results.into_values().collect()
}

/// Starts items while there are places. One item of each list needs none, so every list makes progress.
fn begin_further<'p, W>(
    running: &mut Vec<BegunWork<'p, W>>,
    places: &'p Semaphore,
    mut next: impl FnMut() -> Option<(usize, W)>,
) {
    while running.len() < AT_ONCE {
        let mut place = None;
        if !running.is_empty() {
            match places.try_acquire() {
                Ok(free) => place = Some(free),
                Err(_) => return,
            }
        }
        let Some((index, work)) = next() else { return };
        running.push(BegunWork {
            index,
            work: Box::pin(work),
            _place: place,
        });
    }
}

/// Polls all and keeps the results of those that end. Returns whether one did.
fn finish_some<W: Future>(
    running: &mut Vec<BegunWork<'_, W>>,
    results: &mut BTreeMap<usize, W::Output>,
    context: &mut Context<'_>,
) -> bool {
    let before = running.len();
    running.retain_mut(|one| match one.work.as_mut().poll(context) {
        Poll::Ready(result) => {
            results.insert(one.index, result);
            false
        }
        Poll::Pending => true,
    });
    running.len() < before
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    /// Counts what runs at the same time.
    #[derive(Default)]
    struct Counter {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Counter {
        async fn run(&self, seconds: u64) -> u64 {
            let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(now, Ordering::Relaxed);
            sleep(Duration::from_secs(seconds)).await;
            self.now.fetch_sub(1, Ordering::Relaxed);
            seconds
        }

        fn most(&self) -> usize {
            self.most.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn four_items_run_at_once_and_the_results_are_in_their_order() {
        let (places, counter) = (Semaphore::new(6), Counter::default());
        let begun = Instant::now();
        let items: Vec<u64> = (1..=20).rev().collect();
        let results = within(&places, items.clone(), |seconds| counter.run(seconds)).await;
        assert_eq!(results, items);
        assert_eq!(counter.most(), AT_ONCE);
        // 210 seconds of work.
        assert!(begun.elapsed() < Duration::from_secs(70), "{begun:?}");
        assert_eq!(places.available_permits(), 6);
        let none = within(&places, Vec::new(), |seconds| counter.run(seconds));
        assert!(none.await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn each_list_goes_on_and_all_of_them_share_the_further_places() {
        let (places, counter) = (Semaphore::new(2), Counter::default());
        let list = || within(&places, vec![1; 6], |seconds| counter.run(seconds));
        let (a, b, c) = tokio::join!(list(), list(), list());
        assert_eq!([a, b, c].concat(), [1; 18]);
        assert_eq!(counter.most(), 3 + 2);
    }
}
