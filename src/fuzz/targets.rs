//! The table of targets: each accepts any bytes, and panics if its property does not hold.

use super::{
    accept, arguments, cursors, engine_events, engine_logs, event_ids, frames, header_values,
    headers, hosts, jsonrpc, lines, names, patches, pointers, results, schemas, sealed, secrets,
    settings, sse, templates, traces,
};

/// One target.
pub struct FuzzTarget {
    /// The name of the target and of its archive in `tests/fuzz/corpus`.
    pub name: &'static str,
    /// The property that holds for any bytes; it panics if it does not.
    pub property: fn(&[u8]),
}

/// Every target.
#[rustfmt::skip]
pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget { name: "jsonrpc",       property: jsonrpc::reads_messages },
    FuzzTarget { name: "lines",         property: lines::are_cut_at_newlines },
    FuzzTarget { name: "headers",       property: headers::agree_with_the_body },
    FuzzTarget { name: "header_values", property: header_values::mean_their_arguments },
    FuzzTarget { name: "schemas",       property: schemas::mark_their_headers },
    FuzzTarget { name: "accept",        property: accept::says_what_a_client_takes },
    FuzzTarget { name: "hosts",         property: hosts::let_in_our_names_alone },
    FuzzTarget { name: "session_ids",   property: sealed::session_ids },
    FuzzTarget { name: "event_ids",     property: event_ids::are_our_own },
    FuzzTarget { name: "request_state", property: sealed::request_state },
    FuzzTarget { name: "cursors",       property: cursors::are_our_own },
    FuzzTarget { name: "traces",        property: traces::are_what_the_w3c_has },
    FuzzTarget { name: "sse",           property: sse::is_read_as_it_was_meant },
    FuzzTarget { name: "results",       property: results::say_nothing_newer },
    FuzzTarget { name: "arguments",     property: arguments::fit_the_schema },
    FuzzTarget { name: "templates",     property: templates::find_what_was_put_in },
    FuzzTarget { name: "pointers",      property: pointers::print_and_find_themselves },
    FuzzTarget { name: "patches",       property: patches::change_whole_or_nothing },
    FuzzTarget { name: "differences",   property: patches::lead_from_one_to_the_other },
    FuzzTarget { name: "frames",        property: frames::come_out_as_they_went_in },
    FuzzTarget { name: "engine_logs",   property: engine_logs::are_the_same_lines_in_any_pieces },
    FuzzTarget { name: "engine_events", property: engine_events::are_ids_and_names_alone },
    FuzzTarget { name: "names",         property: names::mean_what_they_say },
    FuzzTarget { name: "settings",      property: settings::are_read_or_explained },
    FuzzTarget { name: "secrets",       property: secrets::are_not_written_down },
];
