//! All tests that need more than one room, in one binary: linking costs more than running a test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails loudly"
)]

mod agent_names;
mod apps;
mod audit;
mod audit_anchors;
mod audit_exact;
mod backup_deletion;
mod backups;
mod balancers;
mod cert;
mod check;
mod checklist;
mod client_config;
mod client_config_write;
mod container_faults;
mod container_moves;
mod container_reading;
mod container_tools;
mod crash_daemon;
mod demo;
mod diagnose;
mod dialect;
mod disk_space;
mod doctor_on_page;
mod engine_backups;
mod engine_confinement;
mod engine_files;
mod engine_host_rights;
mod engine_kill;
mod engine_list;
mod engine_names;
mod engine_tools;
mod engine_user;
mod engine_walk;
#[cfg(feature = "everything")]
mod everything;
mod first_hour;
mod flow_agents;
mod flow_agents_cli;
mod flow_bridge;
mod flow_calls;
mod flow_changes;
mod flow_confirm;
mod flow_confirm_owner;
mod flow_connect;
mod flow_consent;
mod flow_converge;
mod flow_crowd;
mod flow_edge;
mod flow_fairness;
mod flow_fronts;
mod flow_helper_policy;
mod flow_host;
mod flow_idle;
mod flow_inbox;
mod flow_job_tasks;
mod flow_jobs;
mod flow_kept_alive;
mod flow_lifecycle;
mod flow_names;
mod flow_no_streams;
mod flow_overrides;
mod flow_owner;
mod flow_policy;
mod flow_refusals;
mod flow_reload;
mod flow_request_ids;
mod flow_required_header;
mod flow_robustness;
mod flow_session_notices;
mod flow_sessions;
mod flow_settings;
mod flow_siege;
mod flow_strangers;
mod flow_streams;
mod flow_suggest;
mod flow_tasks;
mod flow_unguarded;
mod flow_updates;
mod flow_workers;
mod full_disk;
mod fuzz_corpus;
mod held_commands;
mod help_texts;
mod helper;
mod helper_fairness;
mod helper_hostile;
mod helper_jobs;
mod helper_reload;
mod host_disks;
mod host_files;
mod host_network;
mod host_swap;
mod hostile_container;
mod house_rules;
mod inner_docker;
mod inner_hostile;
mod job_cli;
mod kernel_messages;
mod kill_escapes;
mod killing;
mod logins;
mod long_outputs;
mod mail;
mod manuals;
mod mdns;
mod metrics;
mod notifications;
mod notify;
mod owner_containers;
mod owner_page;
mod ownership;
mod plain_english;
mod prompts;
mod push;
mod reasons;
mod refused_uploads;
mod restic;
mod schedules;
mod secrets;
mod security_manual;
mod seeds;
mod skills;
mod spaces;
mod spec_base;
mod spec_cancel;
mod spec_chain;
#[cfg(feature = "everything")]
mod spec_context;
mod spec_endpoint;
mod spec_eras;
#[cfg(feature = "everything")]
mod spec_events;
mod spec_framing;
mod spec_guard;
mod spec_headers;
mod spec_limits;
mod spec_listen;
#[cfg(feature = "everything")]
mod spec_offer;
#[cfg(feature = "everything")]
mod spec_questions;
mod spec_sessions;
mod spec_sse;
#[cfg(feature = "everything")]
mod spec_stdio;
mod spec_streams;
#[cfg(feature = "everything")]
mod spec_tasks;
mod ssh_keys;
mod stacks;
mod state_manual;
mod state_tools;
mod state_writers;
mod support;
mod sweep;
mod terminal;
mod top;
mod trial_hints;
mod watches;
