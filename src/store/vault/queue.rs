//! The queue of the writing thread. A job that no task waits for does not wake the thread: a thread switch for each
//! row would cost more than the row.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gatewren_base::sys::lock;

use super::job::{WriterJob, WriterOrder};

/// The maximum number of jobs in one commit. The next commit takes the rest.
const MAX_GROUP: usize = 256;

/// How long a job that no task waits for is delayed to join others. A commit costs as much as several rows.
const GATHER: Duration = Duration::from_millis(5);

/// The sending half. The senders limit how many orders wait.
#[derive(Clone)]
pub(super) struct OrderSender(Arc<Shared>);

/// The receiving half. After it is dropped, sending fails.
pub(super) struct OrderReceiver(Arc<Shared>);

/// The result of receiving.
pub(super) enum TakenOrders {
    /// The jobs of one commit. Empty if the only order is to check for other writers.
    Group(Vec<WriterJob>),
    /// Nothing arrived in time.
    Nothing,
    /// The queue is closed and empty.
    End,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    orders: VecDeque<WriterOrder>,
    /// The number of orders that a task waits for.
    awaited: usize,
    sleep: WakeCondition,
    /// One of the halves is closed.
    closed: bool,
}

/// The condition that wakes the thread.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum WakeCondition {
    /// It is awake.
    #[default]
    Not,
    /// Any order.
    UntilAny,
    /// An order that a task waits for, or a full group.
    UntilNeeded,
}

/// Makes a queue and returns both halves.
///
/// Fast path: a channel wakes its thread for each row, and thread switches took half of its time under load.
pub(super) fn queue() -> (OrderSender, OrderReceiver) {
    let shared = Arc::new(Shared {
        state: Mutex::default(),
        wake: Condvar::new(),
    });
    (OrderSender(Arc::clone(&shared)), OrderReceiver(shared))
}

/// The other half is closed.
pub(super) struct QueueClosed;

impl OrderSender {
    /// Adds an order.
    pub(super) fn put(&self, order: WriterOrder) -> Result<(), QueueClosed> {
        let mut state = lock(&self.0.state);
        if state.closed {
            return Err(QueueClosed);
        }
        state.awaited += usize::from(order.is_awaited());
        state.orders.push_back(order);
        let wakes = match state.sleep {
            WakeCondition::Not => false,
            WakeCondition::UntilAny => true,
            WakeCondition::UntilNeeded => state.is_needed(),
        };
        if wakes {
            state.sleep = WakeCondition::Not;
            drop(state);
            self.0.wake.notify_one();
        }
        Ok(())
    }

    /// Closes the queue. The receiving half processes the remaining orders.
    pub(super) fn close(&self) {
        lock(&self.0.state).closed = true;
        self.0.wake.notify_one();
    }
}

impl OrderReceiver {
    /// Waits at most `at_most` for the next orders.
    pub(super) fn take(&self, at_most: Duration) -> TakenOrders {
        let state = lock(&self.0.state);
        let is_any = |state: &State| !state.orders.is_empty();
        let state = self.wait(state, WakeCondition::UntilAny, at_most, is_any);
        if state.orders.is_empty() {
            return if state.closed {
                TakenOrders::End
            } else {
                TakenOrders::Nothing
            };
        }
        let mut state = self.wait(state, WakeCondition::UntilNeeded, GATHER, State::is_needed);
        let next = state.orders.len().min(MAX_GROUP);
        let group: Vec<WriterOrder> = state.orders.drain(..next).collect();
        if state.orders.is_empty() {
            // Frees the memory of a long queue.
            state.orders.shrink_to(MAX_GROUP);
        }
        state.awaited -= group.iter().filter(|order| order.is_awaited()).count();
        drop(state);
        TakenOrders::Group(group.into_iter().filter_map(WriterOrder::job).collect())
    }

    /// Waits until the condition is true, the time has passed, or the queue is closed.
    fn wait<'q>(
        &'q self,
        mut state: MutexGuard<'q, State>,
        sleep: WakeCondition,
        at_most: Duration,
        is_true: impl Fn(&State) -> bool,
    ) -> MutexGuard<'q, State> {
        let until = Instant::now() + at_most;
        while !is_true(&state) && !state.closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.sleep = sleep;
            let woken = self.0.wake.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.sleep = WakeCondition::Not;
        state
    }
}

impl Drop for OrderReceiver {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.closed = true;
        // Dropping the orders notifies the waiting tasks that they will not run.
        let left = std::mem::take(&mut state.orders);
        drop(state);
        drop(left);
    }
}

impl State {
    fn is_needed(&self) -> bool {
        self.awaited > 0 || self.orders.len() >= MAX_GROUP
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rusqlite::Connection;

    use super::super::job::{Durability, QueuedWork, WriterWork};
    use super::*;

    struct Idle;

    impl WriterWork for Idle {
        fn run(&mut self, _: &Connection) -> bool {
            true
        }

        fn finish(self: Box<Self>, _: Result<(), &str>) {}
    }

    fn order(awaited: bool) -> WriterOrder {
        WriterOrder::Do(WriterJob {
            durability: Durability::Process,
            work: QueuedWork::Other(Box::new(Idle)),
            awaited,
            place: None,
        })
    }

    const LONG: Duration = Duration::from_mins(1);

    fn taken_orders(taker: &OrderReceiver) -> usize {
        match taker.take(LONG) {
            TakenOrders::Group(group) => group.len(),
            TakenOrders::Nothing => panic!("nothing came"),
            TakenOrders::End => panic!("it is closed"),
        }
    }

    #[test]
    fn what_nobody_waits_for_comes_together() {
        let (queue, taker) = queue();
        let putting = thread::spawn(move || {
            for _ in 0..MAX_GROUP + 3 {
                assert!(queue.put(order(false)).is_ok());
            }
            queue
        });
        let mut groups = Vec::new();
        while groups.iter().sum::<usize>() < MAX_GROUP + 3 {
            groups.push(taken_orders(&taker));
        }
        assert!(groups.iter().all(|group| *group <= MAX_GROUP), "{groups:?}");
        assert!(groups.len() < MAX_GROUP, "{groups:?}");
        drop(putting.join().unwrap());
    }

    #[test]
    fn what_somebody_waits_for_takes_with_it_what_is_there() {
        let (queue, taker) = queue();
        for awaited in [false, false, true, false] {
            assert!(queue.put(order(awaited)).is_ok());
        }
        assert_eq!(taken_orders(&taker), 4);
        assert!(queue.put(WriterOrder::Look(Arc::new(()))).is_ok());
        assert_eq!(taken_orders(&taker), 0, "to look is no job");
        assert!(matches!(taker.take(Duration::ZERO), TakenOrders::Nothing));
    }

    #[test]
    fn what_is_there_is_taken_before_the_end_and_after_it_nothing_is_put() {
        let (queue, taker) = queue();
        assert!(queue.put(order(false)).is_ok());
        queue.close();
        assert!(queue.put(order(false)).is_err());
        assert_eq!(taken_orders(&taker), 1);
        assert!(matches!(taker.take(LONG), TakenOrders::End));
        let (queue, taker) = super::queue();
        let token = Arc::new(());
        assert!(queue.put(WriterOrder::Look(Arc::clone(&token))).is_ok());
        drop(taker);
        assert_eq!(Arc::strong_count(&token), 1);
        assert!(queue.put(order(true)).is_err());
    }
}
