//! gatewren: the gateway between AI clients and a home server.
//!
//! # How a request is served
//!
//! 1. [`http`] accepts a connection within the limits, does TLS, and reads the head of a request.
//! 2. [`app`]'s front looks up the path: its access rule and what answers there.
//! 3. [`guard`] accepts or rejects the request: host, origin, type, identity, rate, body. The result is an
//!    `Admitted`, which only the guard creates. Programs without a token request one from [`oauth`], and the
//!    owner decides.
//! 4. [`transport`] parses the JSON-RPC message and detects the era. A stateless request has its context in
//!    `_meta`; for a stateful one, the session supplies it. On standard input and output there is neither socket
//!    nor front: [`guard`] authenticates the client once, and [`transport`] reads its messages line by line.
//! 5. [`dispatch`] finds the method. For a tool it writes the intent into the audit and asks [`policy`]. The
//!    policy's `Verdict` has the permit that every tool needs to run.
//! 6. [`registry`] parses the arguments into the tool's struct. A function of [`toolsets`] runs, with a typed
//!    view of the host from [`backends`].
//! 7. Operations that need root go through [`helper_client`] over a Unix socket to [`helper`], a separate
//!    process, which runs and kills them: a call is a connection, and closing it kills the call.
//! 8. [`dispatch`] writes the outcome into the audit, and [`transport`] chooses the form of the response. If the
//!    result comes first, it is one JSON object; if other messages come before it, it is a stream of events. A
//!    call that takes long may be answered with a task instead: it continues without its request, and the client
//!    asks for the result later.
//!
//! A client that can only start commands starts [`bridge`] on its own machine, which relays standard input and
//! output to step 1.
//!
//! # How a change is published
//!
//! [`observer`] watches the host and writes changes into [`state`], a log of patches in SQLite that other
//! programs may write too. A write notifies the subscribers; each has a cursor and reads the changes after it
//! from the log. Nothing is queued for a slow reader.
//!
//! # Invariants
//!
//! - Imports run downwards only; a test has the table (`tests/it/house_rules.rs`).
//! - [`protocol`] does no I/O and never panics on any bytes.
//! - [`dispatch`] knows only the stateless shape; the stateful era is implemented in [`transport`].
//! - [`registry`] depends on neither HTTP nor stores; no tool decides who may call it.
//! - Only [`policy`] creates permits; only [`sys`] has unsafe code; only [`helper`] starts processes for callers,
//!   and it does not trust the front.
//! - A call that cannot be written into the audit is not run.

#![cfg_attr(
    not(feature = "everything"),
    expect(
        dead_code,
        unused_imports,
        reason = "the engine serves more of MCP than this server's own definition needs; the reference \
                  fixtures use the rest, and the lints run with them"
    )
)]

mod app;
mod auth;
mod backends;
mod bridge;
mod cli;
mod config;
mod courier;
mod deeds;
mod dispatch;
#[cfg(feature = "everything")]
mod everything;
mod exec;
#[cfg(feature = "fuzzing")]
pub mod fuzz;
mod guard;
mod helper;
mod helper_client;
mod http;
mod oauth;
mod observer;
mod owner;
mod policy;
mod protocol;
mod registry;
mod state;
mod sys;
mod telemetry;
mod toolsets;
mod transport;
mod vault;

pub use cli::main;
