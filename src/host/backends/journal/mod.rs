//! The journals of the host and of containers: searches, waiting for lines, boots, and how they ended.

mod boots;
mod kernel_ring;
mod line;
mod moment;
mod reader;
mod uptime;
mod view;

pub use boots::*;
pub use line::LogLine;
pub use moment::LogMoment;
pub use uptime::*;
pub use view::{Journal, JournalView, LogPage, LogSearch};
