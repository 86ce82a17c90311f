//! What a call of each tool does, in a sentence for the owner, who decides on it.

/// The tools that change something, by name. Words in brackets are only for a call with a target, `{}`.
#[rustfmt::skip]
const SENTENCES: &[(&str, &str)] = &[
    ("backup_create",              "Make a backup[ of {}]"),
    ("backup_delete",              "Delete a backup[ of {}]"),
    ("backup_restore",             "Restore a backup[ of {}]"),
    ("backup_target_add",          "Add a backup target"),
    ("backup_target_mount",        "Mount a backup target"),
    ("backup_target_remove",       "Remove a backup target"),
    ("backup_target_umount",       "Unmount a backup target"),
    ("change_withdraw",            "Withdraw a proposal"),
    ("container_autostart",        "Change whether the container[ {}] starts at boot"),
    ("container_clone",            "Clone the container[ {}]"),
    ("container_config_set",       "Change the settings of the container[ {}]"),
    ("container_create",           "Create the container[ {}]"),
    ("container_destroy",          "Delete the container[ {}] and all its files"),
    ("container_file_write",       "Write a file in the container[ {}]"),
    ("container_freeze",           "Freeze the container[ {}]"),
    ("container_move",             "Move the container[ {}] to another place"),
    ("container_rebuild",          "Roll the container[ {}] back to a snapshot"),
    ("container_restart",          "Restart the container[ {}]"),
    ("container_shell",            "Run a command in the container[ {}]"),
    ("container_snapshot_create",  "Make a snapshot of the container[ {}]"),
    ("container_snapshot_delete",  "Delete a snapshot of the container[ {}]"),
    ("container_snapshot_restore", "Restore the container[ {}] from a snapshot"),
    ("container_start",            "Start the container[ {}]"),
    ("container_stop",             "Stop the container[ {}]"),
    ("container_unfreeze",         "Resume the frozen container[ {}]"),
    ("disk_cleanup",               "Free disk space"),
    ("disk_repair",                "Repair a disk"),
    ("dns_set_static",             "Set the server's name servers"),
    ("file_write",                 "Write a file on the server"),
    ("firmware_update",            "Update the firmware"),
    ("job_cancel",                 "Cancel a job"),
    ("job_start",                  "Run a command as a job[ in {}]"),
    ("notification_mark",          "Mark notifications as seen or unseen"),
    ("notification_remove",        "Remove notifications"),
    ("notify_send",                "Send you a message"),
    ("propose_change",             "Propose a change"),
    ("schedule_create",            "Create a schedule"),
    ("schedule_delete",            "Delete a schedule"),
    ("schedule_pause",             "Pause or resume a schedule"),
    ("server_cancel_shutdown",     "Cancel the shutdown of the server"),
    ("server_governor",            "Change the CPU governor of the server"),
    ("server_restart",             "Restart the server"),
    ("server_set_hostname",        "Change the server's name"),
    ("server_set_keyboard",        "Change the server's keyboard layout"),
    ("server_set_language",        "Change the server's language"),
    ("server_set_timezone",        "Change the server's time zone"),
    ("server_shutdown",            "Shut down the server"),
    ("server_zram",                "Change the compressed swap of the server"),
    ("session_kill",               "End sessions of its own clients"),
    ("ssh_key_add",                "Let an SSH key sign in"),
    ("ssh_key_remove",             "Remove an SSH key"),
    ("stack_restart",              "Restart a Compose stack"),
    ("stack_start",                "Start a Compose stack"),
    ("stack_stop",                 "Stop a Compose stack"),
    ("state_put",                  "Change the state[ at {}]"),
    ("system_shell",               "Run a command on the server"),
    ("tunnel_down",                "Bring down a WireGuard tunnel"),
    ("tunnel_up",                  "Bring up a WireGuard tunnel"),
    ("unit_disable",               "Disable the unit[ {}]"),
    ("unit_enable",                "Enable the unit[ {}]"),
    ("unit_reload",                "Reload the unit[ {}]"),
    ("unit_reset_failed",          "Clear the failure of the unit[ {}]"),
    ("unit_restart",               "Restart the unit[ {}]"),
    ("unit_start",                 "Start the unit[ {}]"),
    ("unit_stop",                  "Stop the unit[ {}]"),
    ("update_apply",               "Apply updates[ to {}]"),
    ("update_run",                 "Update[ {}] with a way back"),
    ("watch_create",               "Create a watch"),
    ("watch_delete",               "Delete a watch"),
    ("watch_pause",                "Pause or resume a watch"),
    ("wifi_connect",               "Connect to a Wi-Fi network"),
    ("wifi_country",               "Set the Wi-Fi country"),
    ("wifi_enable",                "Turn the Wi-Fi radio on or off"),
    ("wifi_forget",                "Forget a Wi-Fi network"),
];

/// The tools whose calls delete or replace data that no tool can bring back.
#[rustfmt::skip]
const LOSES_DATA: &[&str] = &[
    "backup_delete", "backup_restore", "container_destroy", "container_file_write", "container_rebuild",
    "container_snapshot_delete", "container_snapshot_restore", "disk_cleanup", "disk_repair", "firmware_update",
    "notification_remove", "wifi_forget",
];

/// The sentence about a call.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolSentence {
    /// The words before the target, or the whole sentence if it names no target.
    pub before: String,
    /// The words after the target; `None` if the sentence names no target.
    pub after: Option<&'static str>,
}

/// Returns the sentence about a call of this tool; `None` for a tool that changes nothing.
pub fn sentence(tool: &str, has_target: bool) -> Option<ToolSentence> {
    let row = SENTENCES.binary_search_by_key(&tool, |(name, _)| *name);
    let text = SENTENCES.get(row.ok()?)?.1;
    let whole = |before: String| ToolSentence {
        before,
        after: None,
    };
    let Some((before, rest)) = text.split_once('[') else {
        return Some(whole(text.to_owned()));
    };
    let (optional, after) = rest.split_once(']')?;
    if !has_target {
        return Some(whole(format!("{before}{after}")));
    }
    let (lead, _) = optional.split_once("{}")?;
    Some(ToolSentence {
        before: format!("{before}{lead}"),
        after: Some(after),
    })
}

/// Whether a call of this tool deletes or replaces data that no tool can bring back.
pub fn loses_data(tool: &str) -> bool {
    LOSES_DATA.binary_search(&tool).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_texts::{NO_UNDO, undo_of};

    #[test]
    fn the_sentences_are_sorted() {
        assert!(SENTENCES.is_sorted_by(|one, next| one.0 < next.0));
    }

    #[test]
    fn a_tool_that_loses_data_has_no_undo() {
        assert!(LOSES_DATA.is_sorted());
        for tool in LOSES_DATA {
            assert_eq!(undo_of(tool), Some(NO_UNDO), "{tool}");
        }
    }

    #[test]
    fn a_sentence_reads_well_with_a_target_and_without() {
        let words = |tool, has_target| {
            let ToolSentence { before, after } = sentence(tool, has_target).unwrap();
            after.map_or_else(|| before.clone(), |after| format!("{before}web{after}"))
        };
        assert_eq!(
            words("container_destroy", true),
            "Delete the container web and all its files"
        );
        assert_eq!(
            words("container_destroy", false),
            "Delete the container and all its files"
        );
        assert_eq!(words("backup_create", true), "Make a backup of web");
        assert_eq!(words("backup_create", false), "Make a backup");
        assert_eq!(words("system_shell", true), "Run a command on the server");
        assert_eq!(sentence("container_list", true), None);
    }
}
