//! Places for concurrent operations: each requester has a share, and some places are reserved.
//! A short queue avoids immediate rejection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use gatewren_wire::operations::{Operation, OperationRefusal, RefusalCode, Requester};

use gatewren_base::sys::lock;

/// Concurrent operations of all requesters together.
pub const MAX_OPERATIONS: usize = 64;

/// Operations that wait for a place, of all requesters together. One more is rejected as busy.
pub const MAX_WAITING: usize = 64;

/// Places that only the owner and the observer can take.
const RESERVED_FOR_OWNER: usize = 8;

/// Concurrent commands and changes of all agents. The remaining places are for reads.
const MAX_CHANGES: usize = 48;

/// Concurrent commands and changes of one agent. One more waits.
const MAX_CHANGES_OF_ONE: usize = 16;

/// Concurrent reads of one agent, counted separately so that an agent can inspect its own commands. One more waits.
const MAX_READS_OF_ONE: usize = 16;

/// Operations of one requester that wait at once. One more is rejected as busy.
const MAX_WAITING_OF_ONE: usize = 16;

/// How long an operation waits for a place. Then it is rejected as busy.
const WAIT: Duration = Duration::from_secs(5);

/// The places, and the operations that wait for one.
#[derive(Debug, Default)]
pub struct OperationSlots(Mutex<SlotTable>);

/// A place. Dropping it frees the place for the next operation.
#[derive(Debug)]
pub struct OperationSlot {
    of: Arc<OperationSlots>,
    request: SlotRequest,
}

/// A requester, and the class of its operation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SlotRequest {
    requester: Option<Requester>,
    class: Class,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Runs a command or changes something.
    Change,
    /// Reads, or ends something that runs.
    Read,
}

#[derive(Debug, Default)]
struct SlotTable {
    shares: HashMap<Option<Requester>, SlotUsage>,
    /// The places taken by agents, and by requests without a requester.
    agents: SlotUsage,
    /// The places taken by the owner and the observer.
    privileged: usize,
    /// In order of arrival.
    waiting: Vec<QueuedRequest>,
    next_number: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct SlotUsage {
    changes: usize,
    reads: usize,
}

#[derive(Debug)]
struct QueuedRequest {
    number: u64,
    request: SlotRequest,
    give: oneshot::Sender<OperationSlot>,
}

/// A turn in the queue; dropping it leaves the queue.
struct QueueTicket<'p> {
    places: &'p OperationSlots,
    number: u64,
}

impl OperationSlots {
    /// Takes a place for an operation; waits up to five seconds for one. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// `Busy` if too many operations wait already, or if no place became free in time.
    pub async fn take(
        self: &Arc<Self>,
        requester: Option<&Requester>,
        operation: &Operation,
    ) -> Result<OperationSlot, OperationRefusal> {
        let request = SlotRequest {
            requester: requester.cloned(),
            class: class_of(operation),
        };
        let (give, given) = oneshot::channel();
        let number = {
            let mut book = lock(&self.0);
            // Operations of one requester and class start in their order of arrival.
            if book.has_room(&request) && !book.is_queued_already(&request) {
                book.count(&request);
                return Ok(self.take_slot(request));
            }
            if book.is_queue_full(&request) {
                return Err(book.busy_refusal(&request));
            }
            book.queue(request.clone(), give)
        };
        let _turn = QueueTicket {
            places: self,
            number,
        };
        match timeout(WAIT, given).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(lock(&self.0).busy_refusal(&request)),
        }
    }

    fn take_slot(self: &Arc<Self>, request: SlotRequest) -> OperationSlot {
        OperationSlot {
            of: self.clone(),
            request,
        }
    }

    /// Frees a place, and gives free places to the operations that wait.
    fn release(self: &Arc<Self>, request: &SlotRequest) {
        let mut book = lock(&self.0);
        book.discount(request);
        let mut given = Vec::new();
        while let Some(next) = book.next() {
            book.count(&next.request);
            given.push(next);
        }
        drop(book);
        for QueuedRequest { request, give, .. } in given {
            // If the waiter is gone, the place is dropped, which frees it again.
            drop(give.send(self.take_slot(request)));
        }
    }
}

impl Drop for OperationSlot {
    fn drop(&mut self) {
        self.of.release(&self.request);
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        let mut book = lock(&self.places.0);
        book.waiting.retain(|waiting| waiting.number != self.number);
    }
}

impl SlotTable {
    /// Returns whether a place is free for this operation. An agent gets at most its share, and never more places
    /// than are still free: an agent that takes all it can leaves half to the others.
    fn has_room(&self, request: &SlotRequest) -> bool {
        let of_agents = self.agents.total();
        if of_agents + self.privileged >= MAX_OPERATIONS {
            return false;
        }
        if request.is_privileged() {
            return true;
        }
        let free = (MAX_OPERATIONS - RESERVED_FOR_OWNER).saturating_sub(of_agents);
        let own = self.share(request);
        if own.total() >= free {
            return false;
        }
        match request.class {
            Class::Change => own.changes < MAX_CHANGES_OF_ONE && self.agents.changes < MAX_CHANGES,
            Class::Read => own.reads < MAX_READS_OF_ONE,
        }
    }

    fn share(&self, request: &SlotRequest) -> SlotUsage {
        let share = self.shares.get(&request.requester);
        share.copied().unwrap_or_default()
    }

    /// Returns whether an operation of the same requester and class waits already.
    fn is_queued_already(&self, request: &SlotRequest) -> bool {
        self.waiting
            .iter()
            .any(|waiting| waiting.request == *request)
    }

    fn is_queue_full(&self, request: &SlotRequest) -> bool {
        let same = |waiting: &&QueuedRequest| waiting.request.requester == request.requester;
        let own = self.waiting.iter().filter(same).count();
        self.waiting.len() >= MAX_WAITING || own >= MAX_WAITING_OF_ONE
    }

    fn queue(&mut self, request: SlotRequest, give: oneshot::Sender<OperationSlot>) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let waiting = QueuedRequest {
            number,
            request,
            give,
        };
        self.waiting.push(waiting);
        number
    }

    /// Removes the next operation with room from the queue: the owner and the observer first, then the requester with
    /// the fewest places, then the oldest.
    fn next(&mut self) -> Option<QueuedRequest> {
        let with_room = self.waiting.iter().enumerate();
        let with_room = with_room.filter(|(_, waiting)| self.has_room(&waiting.request));
        let (at, _) = with_room.min_by_key(
            |(
                _,
                QueuedRequest {
                    request, number, ..
                },
            )| {
                let share = self.share(request);
                (!request.is_privileged(), share.total(), *number)
            },
        )?;
        Some(self.waiting.remove(at))
    }

    fn count(&mut self, request: &SlotRequest) {
        if request.is_privileged() {
            self.privileged += 1;
            return;
        }
        let share = self.shares.entry(request.requester.clone()).or_default();
        *share.of(request.class) += 1;
        *self.agents.of(request.class) += 1;
    }

    fn discount(&mut self, request: &SlotRequest) {
        if request.is_privileged() {
            self.privileged -= 1;
            return;
        }
        *self.agents.of(request.class) -= 1;
        if let Some(share) = self.shares.get_mut(&request.requester) {
            *share.of(request.class) -= 1;
            if share.total() == 0 {
                self.shares.remove(&request.requester);
            }
        }
    }

    fn busy_refusal(&self, request: &SlotRequest) -> OperationRefusal {
        let own = self.share(request);
        let (count, what) = match request.class {
            Class::Change => (own.changes, "commands and changes"),
            Class::Read => (own.reads, "reads"),
        };
        let message = if count > 0 {
            format!(
                "the helper runs {count} {what} of this agent, which is the limit; wait for one to end or cancel \
                 one, then try again"
            )
        } else {
            "the helper has reached its limit of operations; try again in a few seconds".to_owned()
        };
        OperationRefusal::new(RefusalCode::Busy, message)
    }
}

impl SlotUsage {
    fn total(self) -> usize {
        self.changes + self.reads
    }

    fn of(&mut self, class: Class) -> &mut usize {
        match class {
            Class::Change => &mut self.changes,
            Class::Read => &mut self.reads,
        }
    }
}

impl SlotRequest {
    fn is_privileged(&self) -> bool {
        matches!(self.requester, Some(Requester::Owner | Requester::Observer))
    }
}

fn class_of(operation: &Operation) -> Class {
    let ends_something = matches!(
        operation,
        Operation::JobCancel { .. } | Operation::JobForget { .. } | Operation::CancelShutdown {}
    );
    if operation.is_read_only() || ends_something {
        Class::Read
    } else {
        Class::Change
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::super::operation_slots::*;

    fn agent(name: &str) -> Requester {
        Requester::Agent(name.into())
    }

    fn change() -> Operation {
        Operation::UpdateRefresh { container: None }
    }

    fn read() -> Operation {
        Operation::ContainerList {}
    }

    fn places() -> Arc<OperationSlots> {
        Arc::default()
    }

    /// Takes as many places as this requester gets without waiting.
    async fn fill(
        places: &Arc<OperationSlots>,
        requester: &Requester,
        operation: &Operation,
    ) -> Vec<OperationSlot> {
        let mut taken = Vec::new();
        let request = SlotRequest {
            requester: Some(requester.clone()),
            class: class_of(operation),
        };
        while lock(&places.0).has_room(&request) {
            let place = places.take(Some(requester), operation).await;
            taken.push(place.unwrap());
        }
        taken
    }

    #[tokio::test(start_paused = true)]
    async fn one_agent_has_its_share_and_can_still_read() {
        let places = places();
        let changes = fill(&places, &agent("a"), &change()).await;
        assert_eq!(changes.len(), MAX_CHANGES_OF_ONE);
        let reads = fill(&places, &agent("a"), &read()).await;
        assert_eq!(reads.len(), 12, "as many in all as are free");
        for other in [Some(agent("b")), None, Some(Requester::Owner)] {
            let started_at = Instant::now();
            places.take(other.as_ref(), &change()).await.unwrap();
            assert_eq!(started_at.elapsed(), Duration::ZERO, "{other:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn when_five_agents_take_all_they_can_a_sixth_finds_a_place_and_the_owner_too() {
        let places = places();
        let mut taken = Vec::new();
        for name in 0..6 {
            let name = agent(&name.to_string());
            let changes = fill(&places, &name, &change()).await;
            assert!(!changes.is_empty(), "{name:?}");
            taken.extend(changes);
            taken.extend(fill(&places, &name, &read()).await);
        }
        let owners = fill(&places, &Requester::Owner, &change()).await;
        assert_eq!(owners.len(), RESERVED_FOR_OWNER);
        assert_eq!(taken.len() + owners.len(), MAX_OPERATIONS);
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_place_waits_for_one_and_then_is_refused() {
        let places = places();
        let mut changes = fill(&places, &agent("a"), &change()).await;
        let started_at = Instant::now();
        let refused = places.take(Some(&agent("a")), &change()).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, RefusalCode::Busy);
        assert!(refused.message.contains("16 commands"), "{refused}");
        assert_eq!(started_at.elapsed(), WAIT);
        let requester = agent("a");
        let operation = change();
        let (taken, ()) = tokio::join!(places.take(Some(&requester), &operation), async {
            drop(changes.pop());
        });
        changes.push(taken.unwrap());
        assert_eq!(started_at.elapsed(), WAIT, "it began at once");
        drop(changes);
        assert!(lock(&places.0).shares.is_empty());
        assert!(lock(&places.0).waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_too_long_is_refused_at_once() {
        let places = places();
        let _changes = fill(&places, &agent("a"), &change()).await;
        let waiting = (0..MAX_WAITING_OF_ONE).map(|_| {
            let places = places.clone();
            tokio::spawn(async move { places.take(Some(&agent("a")), &change()).await.is_ok() })
        });
        let waiting: Vec<_> = waiting.collect();
        while lock(&places.0).waiting.len() < MAX_WAITING_OF_ONE {
            tokio::task::yield_now().await;
        }
        let started_at = Instant::now();
        let refused = places.take(Some(&agent("a")), &change()).await;
        assert_eq!(refused.unwrap_err().code, RefusalCode::Busy);
        assert_eq!(started_at.elapsed(), Duration::ZERO);
        places.take(Some(&agent("b")), &change()).await.unwrap();
        // An operation that is aborted leaves the queue.
        waiting[0].abort();
        while lock(&places.0).waiting.len() == MAX_WAITING_OF_ONE {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_free_place_goes_to_the_owner_first_and_then_to_who_has_least() {
        let places = places();
        let mut owners = fill(&places, &Requester::Owner, &change()).await;
        assert_eq!(owners.len(), MAX_OPERATIONS);
        let (order, mut came) = tokio::sync::mpsc::unbounded_channel();
        for (number, who) in [agent("a"), agent("b"), Requester::Observer]
            .into_iter()
            .enumerate()
        {
            let (places, order) = (places.clone(), order.clone());
            tokio::spawn(async move {
                let place = places.take(Some(&who), &read()).await.unwrap();
                order.send((number, place)).unwrap();
            });
            tokio::task::yield_now().await;
        }
        drop(owners.pop());
        let (first, _observer) = came.recv().await.unwrap();
        assert_eq!(first, 2, "the observer");
        // From here on agents have room: eight places are reserved for the owner.
        owners.truncate(40);
        let (second, _) = came.recv().await.unwrap();
        assert_eq!(second, 0, "who came first");
    }
}
