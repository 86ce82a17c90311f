//! gatewren: the gate between AI clients and a home server.

mod exec;
mod helper_client;
mod sys;
