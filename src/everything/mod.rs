//! The reference fixtures: a second server definition, whose tools do one thing each that a client has to cope with.
#![forbid(unsafe_code)]

mod about;
mod data_url;
mod definition;
mod documents;
mod dynamic;
mod elicitations;
mod forms;
mod kept;
mod media;
mod prompts;
mod prompts_reference;
mod pulse;
mod resources;
mod rounds;
mod tools_client;
mod tools_content;
mod tools_input;
mod tools_lists;
mod tools_notes;
mod tools_plain;
mod tools_resources;
mod tools_rounds;
mod tools_schema;
mod tools_slow;
mod tools_tasks;
mod tools_toggles;

pub use definition::catalog;
