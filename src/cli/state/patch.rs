//! `gatewren state patch`: writes one revision, in the way that any program may.

use std::io::{self, Read as _};
use std::path::Path;

use serde_json::json;

use super::author_key::author_key;
use gatewren_store::state::{Actor, Author, Patch, apply_once};

/// The author of the revision.
#[derive(Debug, clap::Args)]
pub struct StatePatchArgs {
    /// The program that the revision is attributed to; the owner if absent
    #[arg(long = "as", value_name = "PROGRAM")]
    program: Option<String>,
    /// The reason, for readers of the log
    #[arg(long, value_name = "TEXT")]
    cause: Option<String>,
}

/// The maximum number of bytes to read from standard input; the document rejects a longer patch anyway.
const MAX_INPUT_BYTES: u64 = 8 << 20;

/// Applies the patch on standard input to the database in `file`.
pub fn run(file: &Path, args: &StatePatchArgs, json: bool) -> Result<String, String> {
    let actor = args.program.clone().map_or(Actor::Owner, Actor::Local);
    let author = args.cause.iter().fold(Author::from(actor), Author::because);
    let key = author_key(file);
    let written = apply_once(file, &author, &read_patch()?, key.as_deref());
    let written = written.map_err(|e| e.to_string())?;
    Ok(if json {
        json!({ "revision": written.revision, "database": written.database_id }).to_string()
    } else {
        format!("the state is at revision {}", written.revision)
    })
}

fn read_patch() -> Result<Patch, String> {
    let mut text = String::new();
    let read = io::stdin().take(MAX_INPUT_BYTES).read_to_string(&mut text);
    read.map_err(|cause| format!("standard input: {cause}"))?;
    Patch::parse(&text).map_err(|error| error.to_string())
}
