//! Code that tests share: the helper and the whole server as black boxes, a client, the containers, and skipping a
//! test with a printed reason.

pub mod answer;
pub mod apart;
pub mod chance;
pub mod client;
pub mod command;
pub mod connector;
pub mod consent;
pub mod container;
pub mod cores;
pub mod fort;
pub mod frames;
pub mod gate;
pub mod helper;
pub mod history;
pub mod machine;
pub mod manager;
pub mod manual;
pub mod pipe;
pub mod postbox;
pub mod raw;
pub mod request;
pub mod server;
pub mod session;
pub mod source;
pub mod state;
pub mod stream;
pub mod tasks;
pub mod watcher;
