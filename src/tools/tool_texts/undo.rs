//! What undoes a call of each tool that changes something: a column of the table of tools.

/// The undo of a tool after whose call nothing brings the earlier state back.
pub const NO_UNDO: &str = "none";

/// Each tool that changes something, with the tool that undoes its call, or [`NO_UNDO`]. The same tool means a second
/// call with the earlier values. What only a backup or snapshot from before the call could bring back has no undo,
/// unless the tool makes one itself.
#[rustfmt::skip]
const UNDO: &[(&str, &str)] = &[
    ("backup_create",              "backup_delete"),
    ("backup_delete",              NO_UNDO),
    // It replaces the container, and keeps nothing of what it was.
    ("backup_restore",             NO_UNDO),
    ("backup_target_add",          "backup_target_remove"),
    ("backup_target_mount",        "backup_target_umount"),
    ("backup_target_remove",       "backup_target_add"),
    ("backup_target_umount",       "backup_target_mount"),
    ("change_withdraw",            "propose_change"),
    ("container_autostart",        "container_autostart"),
    ("container_clone",            "container_destroy"),
    ("container_config_set",       "container_config_set"),
    ("container_create",           "container_destroy"),
    ("container_destroy",          NO_UNDO),
    // The old content is lost, unless somebody read it before.
    ("container_file_write",       NO_UNDO),
    ("container_freeze",           "container_unfreeze"),
    ("container_move",             "container_move"),
    ("container_rebuild",          NO_UNDO),
    ("container_restart",          NO_UNDO),
    ("container_shell",            NO_UNDO),
    ("container_snapshot_create",  "container_snapshot_delete"),
    ("container_snapshot_delete",  NO_UNDO),
    ("container_snapshot_restore", NO_UNDO),
    ("container_start",            "container_stop"),
    ("container_stop",             "container_start"),
    ("container_unfreeze",         "container_freeze"),
    ("disk_cleanup",               NO_UNDO),
    ("disk_repair",                NO_UNDO),
    ("dns_set_static",             "dns_set_static"),
    // The old version is in the file with the name plus `~`.
    ("file_write",                 "file_write"),
    ("firmware_update",            NO_UNDO),
    ("job_cancel",                 NO_UNDO),
    ("job_start",                  NO_UNDO),
    ("notification_mark",          "notification_mark"),
    ("notification_remove",        NO_UNDO),
    ("notify_send",                NO_UNDO),
    ("propose_change",             "change_withdraw"),
    ("schedule_create",            "schedule_delete"),
    ("schedule_delete",            "schedule_create"),
    ("schedule_pause",             "schedule_pause"),
    ("server_cancel_shutdown",     "server_restart"),
    ("server_governor",            "server_governor"),
    // Only until the delay is over.
    ("server_restart",             "server_cancel_shutdown"),
    ("server_set_hostname",        "server_set_hostname"),
    ("server_set_keyboard",        "server_set_keyboard"),
    ("server_set_language",        "server_set_language"),
    ("server_set_timezone",        "server_set_timezone"),
    ("server_shutdown",            "server_cancel_shutdown"),
    ("server_zram",                "server_zram"),
    ("session_kill",               NO_UNDO),
    ("ssh_key_add",                "ssh_key_remove"),
    ("ssh_key_remove",             "ssh_key_add"),
    ("stack_restart",              NO_UNDO),
    ("stack_start",                "stack_stop"),
    ("stack_stop",                 "stack_start"),
    ("state_put",                  "state_put"),
    ("system_shell",               NO_UNDO),
    ("tunnel_down",                "tunnel_up"),
    ("tunnel_up",                  "tunnel_down"),
    ("unit_disable",               "unit_enable"),
    ("unit_enable",                "unit_disable"),
    ("unit_reload",                NO_UNDO),
    ("unit_reset_failed",          NO_UNDO),
    ("unit_restart",               NO_UNDO),
    ("unit_start",                 "unit_stop"),
    ("unit_stop",                  "unit_start"),
    ("update_apply",               NO_UNDO),
    // Of a container that it saved first; the host is not saved.
    ("update_run",                 "container_snapshot_restore"),
    ("watch_create",               "watch_delete"),
    ("watch_delete",               "watch_create"),
    ("watch_pause",                "watch_pause"),
    ("wifi_connect",               "wifi_connect"),
    ("wifi_country",               "wifi_country"),
    ("wifi_enable",                "wifi_enable"),
    // The password is forgotten too.
    ("wifi_forget",                NO_UNDO),
];

/// The tool that undoes a call of this tool, or [`NO_UNDO`]; nothing for a tool that changes nothing.
pub fn undo_of(tool: &str) -> Option<&'static str> {
    let row = UNDO.binary_search_by_key(&tool, |(name, _)| *name).ok()?;
    UNDO.get(row).map(|(_, undo)| *undo)
}

/// All rows, for the tests of the catalog.
#[cfg(any(test, feature = "testing"))]
pub fn undo_rows() -> &'static [(&'static str, &'static str)] {
    UNDO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_undo_is_a_tool_that_changes_something() {
        assert!(UNDO.is_sorted_by(|one, next| one.0 < next.0));
        for (name, undo) in UNDO {
            assert!(
                *undo == NO_UNDO || undo_of(undo).is_some(),
                "{name}: its undo {undo} must be a tool that changes something"
            );
        }
    }
}
