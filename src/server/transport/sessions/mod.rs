//! Sessions of the stateful revisions: their table, streams and buffers.

pub mod event_id;
pub mod lookup;
pub mod open_sessions;
pub mod passed_message;
pub mod registry;
pub mod replay;
pub mod session;
pub mod session_store;
pub mod session_stream;
pub mod session_table;
pub mod session_token;
pub mod shared_store;
pub mod stream_buffer;
