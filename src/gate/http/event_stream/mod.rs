//! Event streams: from their producer to the connection, which is taken from hyper for the rest of a long stream.

mod queue;
mod sse;
mod sse_writer;
mod take_connection;

pub use sse::{EventSender, EventStream, StreamClosed};
pub(in crate::http) use sse_writer::SseWriter;
pub(in crate::http) use take_connection::{ConnectionTakeover, TakeoverIo};
