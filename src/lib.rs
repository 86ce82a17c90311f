//! gatewren: the gate between AI clients and a home server.
//!
//! # The way of a request
//!
//! 1. [`http`] accepts a connection under a cap, does TLS, and reads one request's head.
//! 2. [`app`]'s front looks up the path: which door it stands behind and what answers there.
//! 3. [`guard`] lets it in or refuses it: host, origin, type, identity, rate, body. What comes out is
//!    an `Admitted`, which nothing else makes. Programs that hold no token yet ask [`oauth`], and the owner decides.
//! 4. [`transport`] reads the JSON-RPC message and decides the era. A stateless request brings its
//!    context in `_meta`; for a stateful one the session supplies it.
//!    On standard input and output there is neither socket nor front: [`guard`] knows the client once, and
//!    [`transport`] reads its messages line by line.
//! 5. [`dispatch`] finds the method. For a tool it writes the intent into the audit and asks [`policy`],
//!    whose `Verdict` holds the permit without which no tool runs.
//! 6. [`registry`] reads the arguments into the tool's struct; a function of [`toolsets`] runs, over a
//!    typed view of the box from [`backends`].
//! 7. What needs root goes through [`helper_client`] over a Unix socket to [`helper`], a process of its
//!    own, which runs it and kills it: a call is a connection, and closing it is the kill.
//! 8. Back in [`dispatch`] the outcome goes into the audit, and [`transport`] decides the form: the result
//!    first is one JSON object, anything before it is a stream of events. A call that takes long may be
//!    answered with a task instead; then it goes on without its request, and the client asks later.
//!
//! A client that can only start commands starts [`bridge`] on its own machine, which carries what is said on standard
//! input and output to step 1.
//!
//! # The way of a change
//!
//! [`observer`] looks at the box and writes what changed into [`state`], a log of patches in SQLite that
//! other programs may write too. A write rings a bell; whoever listens holds a cursor and asks the log
//! what has changed behind it. Nothing is queued for a slow reader.
//!
//! # Invariants
//!
//! - Imports run downwards only; the table is a test (`tests/it/house_rules.rs`).
//! - [`protocol`] does no I/O and never panics on any bytes.
//! - [`dispatch`] knows only the stateless shape; the stateful era is files in [`transport`].
//! - [`registry`] knows no HTTP and no store; no tool decides who may call it.
//! - Only [`policy`] makes permits; only [`sys`] has unsafe code; only [`helper`] starts processes for
//!   callers, and it does not trust the front.
//! - What cannot be written into the audit is not run.

#![cfg_attr(
    not(feature = "everything"),
    expect(
        dead_code,
        unused_imports,
        reason = "the engine serves more of MCP than this box's own definition asks of it; the reference \
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
