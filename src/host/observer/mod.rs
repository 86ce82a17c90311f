//! Keeps the state document up to date: independent watchers, each for its own part of the host.
//!
//! # Watchers
//!
//! A watcher is a struct in its own file (`host_watch`, `container_watch`) with `async fn run(self)`, which never
//! returns. It looks, writes what it saw, and waits for a reason to look again: an event, a request, or an
//! interval. [`Observer::new`] creates the watchers, and [`Observer::run`] starts each as a task and stops them
//! all. Watchers are independent: a slow one delays only the callers that requested a look.
//!
//! | watcher | its pointers | its events |
//! |---|---|---|
//! | `container_watch` | `/public/packageData`, `/public/observer/containers` | `lxc-monitor`, inotify (helper) |
//! | `host_watch` | `/public/serverInfo` | netlink (addresses, links, routes, disks), polled `/proc` files, inotify |
//! | `notices` | `/public/notifications` | changes of the state that an owner should be notified of |
//! | `unit_watch` | `/public/units`, `/public/observer/units` | D-Bus signals of systemd |
//!
//! # The parts of a watcher
//!
//! - A [`writer::WatcherOutput`] for output. `write(&["public", "units"], value)` sets the value; an unchanged value makes
//!   no revision, and what another program changes there is corrected within a second (`kept_parts`). Each pointer has one watcher that writes at or below it. `available("units", why_not)` records in
//!   `/public/observer/units` whether this watcher can see anything at all. `note("units", result)` logs a failure
//!   once, until it changes.
//! - Its [`handle::LookRequests`]. A caller that changed something requests a look from all watchers (`sync_db` in the
//!   registry). It waits until each has finished, or two seconds have passed. Before a look, `begin` takes the
//!   requests that it answers; when the result is written, `answer` notifies the callers. A look that began before
//!   the request does not count, whatever it saw.
//!
//! ```text
//! loop {
//!     let begun = self.requests.begin();
//!     self.look().await;                       // complete, and written with self.writer
//!     self.requests.answer(begun);
//!     tokio::select! {
//!         () = self.requests.next() => {}      // requested
//!         () = sleep(LOOK_EVERY) => {}         // periodic, for facts without events
//!         news = next_events(&mut self.events) => self.handle_events(news).await,
//!     }
//! }
//! ```
//!
//! A watcher may be dropped at any `await`. On a transient failure the last known state stays in the document,
//! because a failure should not look like a change; things that are gone for good are removed. Counters that change
//! by themselves are not written, so an idle host makes no revisions.
#![forbid(unsafe_code)]

mod causes;
mod container_facts;
mod container_watch;
mod containers;
mod handle;
mod host_facts;
mod host_watch;
mod kept_parts;
mod level;
mod notices;
mod pace;
mod unit_facts;
mod unit_watch;
mod units;
#[cfg(test)]
mod watched;
mod watchers;
mod writer;

pub use handle::ObserverHandle;
pub use units::ObservedUnits;
pub use watchers::Observer;
