//! From a call to its reply; knows only the stateless shape, which the stateful revisions are adapted to.
#![forbid(unsafe_code)]

mod call;
mod complete;
mod discover;
mod engine;
mod interests;
mod listen;
mod listing;
mod methods;
mod prompts;
mod record;
mod reference;
mod resources;
mod results;
mod rounds;
mod sealed;
mod tools;

pub use call::{Call, Context, Held, Outcome, Reply};
pub use engine::Engine;
pub use interests::Interests;
pub use listen::{Event, Listener, ended as subscription_ended};
pub use listing::Listing;

#[cfg(feature = "fuzzing")]
pub use sealed::{Sealer, digest_of};
