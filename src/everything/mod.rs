//! The reference fixtures: a second server definition, whose tools do one thing each that a client has to cope with.
#![forbid(unsafe_code)]

mod definition;
mod elicitations;
mod media;
mod prompts;
mod resources;
mod rounds;
mod tools_about;
mod tools_content;
mod tools_input;
mod tools_lists;
mod tools_notes;
mod tools_rounds;
mod tools_schema;
mod tools_tasks;

pub use definition::catalog;
