//! Tasks: calls that continue after their answer, and the methods to follow and cancel them.

pub mod call_end;
pub mod live_task;
pub mod long_call;
pub mod methods;
pub mod promotion;
pub mod runner;
pub mod store;
pub mod table;
pub mod watch;
