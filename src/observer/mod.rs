//! Keeps the state document true to the box: independent watchers side by side, each over its own part.
//!
//! # Watchers
//!
//! A watcher is a struct in a file of its own (`host_watch`, `container_watch`) with `async fn run(self)`,
//! which never returns: it looks, writes what it saw, and waits for a reason to look again, be that an event
//! of its own, a request, or time. [`Observer::new`] makes them, [`Observer::run`] starts each as a task and
//! ends them all. None knows another, and a slow one holds up nobody but who asked for a look.
//!
//! | watcher | its pointers | its events |
//! |---|---|---|
//! | `container_watch` | `/public/packageData`, `/public/observer/containers` | states (`lxc-monitor`) and definitions (inotify), through the helper |
//! | `host_watch` | `/public/serverInfo` | netlink (addresses, links, routes, disks), files of `/proc` that poll, inotify |
//! | `notices` | `/public/notifications` | the state itself: what an owner should hear of |
//! | `unit_watch` | `/public/units`, `/public/observer/units` | D-Bus signals of systemd |
//!
//! # What a watcher is given
//!
//! - A [`scribe::Scribe`], its pen: `write(&["public", "units"], value)` makes the value stand there, and
//!   what stands there already makes no revision. Each pointer has one watcher that writes at or below it.
//!   `available("units", why_not)` says in `/public/observer/units` whether this watcher can see anything
//!   at all; `note("units", result)` complains in the log once, until it changes.
//! - Its [`handle::Requests`]: whoever changed something asks all watchers to look (`sync_db` in the registry)
//!   and waits until each has, or two seconds have passed. Before a look, `begin` takes the requests that it
//!   answers; when what it saw is written, `answer` tells those who wait. A look that began before the
//!   request does not count, whatever it saw.
//!
//! ```text
//! loop {
//!     let begun = self.requests.begin();
//!     self.look().await;                       // whole, and written with self.scribe
//!     self.requests.answer(begun);
//!     tokio::select! {
//!         () = self.requests.next() => {}      // asked
//!         () = sleep(LOOK_EVERY) => {}         // slowly, for what has no event
//!         news = next_news(&mut self.events) => self.hear(news).await,
//!     }
//! }
//! ```
//!
//! A watcher may be dropped at any `await`. What it cannot see is left as it was last seen, for a passing
//! failure should not look like a change; what is gone for good is taken away. Counters that move by
//! themselves are not written: an idle box makes no revisions.
#![forbid(unsafe_code)]

mod causes;
mod complaints;
mod container_facts;
mod container_watch;
mod containers;
mod handle;
mod host_facts;
mod host_watch;
mod level;
mod notices;
mod pace;
mod rate;
mod scribe;
mod unit_facts;
mod unit_watch;
mod units;
#[cfg(test)]
mod watched;
mod watchers;

pub use handle::ObserverHandle;
pub use units::Units;
pub use watchers::Observer;
