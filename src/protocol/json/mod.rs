//! JSON without trees of values: strict parsing into the fields of messages, and writing of texts that readers share.

mod members;
mod params;
mod parts;
mod quoted;
mod raw_json;
mod strict;

pub use members::{BodySeed, Member, MessageMembers, MethodName, ParsedBody};
pub use params::Params;
pub use parts::MessageBytes;
pub use quoted::QuotedJson;
pub use raw_json::SerializedJson;
pub use strict::parse_as;
