//! The owner's page: the inbox, the host, the agents and the audit, in a browser.
//!
//! Every page is HTML that needs no script: links and forms. A script from the same server keeps the content up to
//! date. Nothing is loaded from other servers, and the headers forbid it.
#![forbid(unsafe_code)]

mod activity_filter;
mod agent;
mod agent_cards;
mod agent_form;
mod agent_new;
mod agent_texts;
mod agent_token;
mod agents;
mod alerts;
mod asset;
mod asset_address;
mod audit;
mod call_table;
mod change;
mod change_parts;
mod change_table;
mod chart;
mod confirm;
mod connect;
mod container_action;
mod container_host_parts;
mod container_in_state;
mod container_list;
mod container_page;
mod container_parts;
mod container_ports;
mod container_texts;
mod decide;
mod diff;
mod events;
mod frame;
mod grant_form;
mod header;
mod heat_map;
mod help;
mod home_texts;
mod home_tiles;
mod host_page;
mod inbox;
mod inbox_card;
mod inbox_order;
mod inbox_result;
mod inbox_texts;
mod logins;
mod notification_texts;
mod notifications;
mod owner_host;
mod page_error;
mod parts;
mod problems;
mod profile;
mod routes;
mod samples;
mod schedules;
mod settings;
mod sign_in;
mod site;
mod status_times;
mod texts;
mod theme;
mod timeline;
mod typed_name;
mod usage_charts;
mod watch_table;

#[cfg(any(test, feature = "testing"))]
pub use diff::diff as argument_list;
pub use owner_host::OwnerHost;
pub use profile::profile;
pub use samples::{ContainerSample, HostSample, SampleHistory, Samples};
pub use site::OwnerSite;
pub use theme::chosen_theme;
