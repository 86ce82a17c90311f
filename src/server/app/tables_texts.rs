//! Tests what the owner reads about tools against the catalog: each tool that changes something has its texts.

use std::collections::BTreeSet;

use super::tables::tables;
use gatewren_base::config::Risk;
use gatewren_tools::tool_texts::{NO_UNDO, sentence, undo_of, undo_rows};

#[test]
fn each_tool_that_changes_something_has_an_undo_or_none_and_no_reading_tool_has_one() {
    let catalog = tables().unwrap();
    for tool in catalog.tools() {
        let name = tool.name();
        let only_reads = matches!(tool.risk(), Risk::Read | Risk::Scan | Risk::Reveal);
        // Its class is read, because nothing happens before the owner approves; the proposal is there anyway.
        let only_reads = only_reads && name != "propose_change";
        assert_eq!(
            undo_of(name).is_none(),
            only_reads,
            "{name}: a tool that changes something has a line in UNDO in src/tools/tool_texts/undo.rs, a reading tool none"
        );
    }
}

#[test]
fn each_undo_is_in_the_catalog() {
    let catalog = tables().unwrap();
    let names: BTreeSet<&str> = catalog.tools().map(|tool| tool.name()).collect();
    for (name, undo) in undo_rows() {
        assert!(names.contains(name), "{name} in UNDO is no tool");
        assert!(
            *undo == NO_UNDO || names.contains(undo),
            "{name}: its undo {undo} is no tool"
        );
    }
}

#[test]
fn each_tool_that_changes_something_has_a_sentence() {
    let catalog = tables().unwrap();
    for tool in catalog.tools() {
        let name = tool.name();
        for has_target in [true, false] {
            let changes = undo_of(name).is_some();
            assert_eq!(sentence(name, has_target).is_some(), changes, "{name}");
        }
    }
}
