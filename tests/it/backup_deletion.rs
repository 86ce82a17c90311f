//! Deleting backups: one by its id, and older ones by the rule of a new backup.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::backups::{Home, names};
use crate::support::command::{refused, tell, words};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Server, server};

/// Makes a backup of a directory and returns its answer.
fn made(home: &Home, path: &Path, more: Value) -> Value {
    let mut asked = more;
    asked["target"] = json!("local");
    asked["path"] = json!(path.display().to_string());
    home.call("backup_create", asked)
}

/// Returns the names in a target's directory, sorted, without its lock file.
fn backups(target: &Path) -> Vec<String> {
    let mut all = names(target);
    all.retain(|name| name != "lock");
    all
}

fn id(made: &Value) -> String {
    made["backup"].as_str().unwrap().to_owned()
}

#[test]
fn a_backup_is_deleted_by_its_id_and_no_other() {
    let Some(home) = Home::new() else { return };
    let (data, kept) = (home.files.join("data"), home.files.join("kept"));
    fs::write(data.join("file"), "data").unwrap();
    let (first, second) = (made(&home, &data, json!({})), made(&home, &data, json!({})));
    let outside = home.files.join("back");
    fs::write(outside.join("manifest.json"), "{}").unwrap();
    let link = "_host@2026-07-28T09-30-00.000Z";
    symlink(&outside, kept.join(link)).unwrap();
    let delete = |id: &str| json!({ "target": "local", "backup": id });
    for absent in [link, "web@2026-07-28T09-30-00.000Z"] {
        let said = home.refused("backup_delete", delete(absent));
        assert!(
            said.contains("there is no backup") && said.contains("backup_list"),
            "{said}"
        );
    }
    assert_eq!(names(&outside), ["manifest.json"]);
    fs::remove_file(kept.join(link)).unwrap();
    let deleted = home.call("backup_delete", delete(&id(&first)));
    assert_eq!(
        deleted,
        json!({ "backup": first["backup"], "target": "local" })
    );
    assert_eq!(backups(&kept), [id(&second)]);
    // A damaged backup can be deleted too.
    fs::write(kept.join(id(&second)).join("manifest.json"), "x").unwrap();
    home.call("backup_delete", delete(&id(&second)));
    assert_eq!(backups(&kept), [""; 0]);
}

#[test]
fn a_rule_deletes_older_backups_of_the_same_subject_after_the_new_one_was_read_back() {
    let Some(home) = Home::new() else { return };
    let (data, kept) = (home.files.join("data"), home.files.join("kept"));
    for name in ["one", "other"] {
        fs::create_dir(data.join(name)).unwrap();
        fs::write(data.join(name).join("file"), name).unwrap();
    }
    let other = id(&made(&home, &data.join("other"), json!({})));
    let old: Vec<String> = (0..3)
        .map(|_| id(&made(&home, &data.join("one"), json!({}))))
        .collect();
    // The first is one of another machine, which writes to the same target.
    let manifest = kept.join(&old[0]).join("manifest.json");
    let mut text: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    text["host"] = json!("elsewhere");
    fs::write(&manifest, text.to_string()).unwrap();
    let new = made(&home, &data.join("one"), json!({ "keep": { "last": 2 } }));
    assert_eq!(new["deleted"], json!([old[1]]), "{new}");
    assert!(new.get("not_deleted").is_none(), "{new}");
    let mut left = vec![other, old[0].clone(), old[2].clone(), id(&new)];
    left.sort();
    assert_eq!(backups(&kept), left);
    let said = home.refused(
        "backup_create",
        json!({ "target": "local", "path": data.display().to_string(), "keep": {} }),
    );
    assert!(said.contains("at least one of last, daily"), "{said}");
    assert_eq!(backups(&kept), left, "nothing is written for a bad rule");
}

#[test]
fn the_owner_does_all_of_it_on_the_command_line() {
    let Some(home) = Home::new() else { return };
    let (data, owner) = (home.files.join("data"), home.state_dir());
    fs::write(data.join("file"), "data").unwrap();
    let path = data.display().to_string();
    let create = [
        "backup", "create", "local", "--path", &path, "--keep", "last=1",
    ];
    let (first, code) = tell(&owner, &create);
    assert_eq!(
        (first["path"].as_str(), code),
        (Some(path.as_str()), Some(0)),
        "{first}"
    );
    let second = words(&owner, &create);
    assert!(
        second.contains(&format!("deleted {}", id(&first))),
        "{second}"
    );
    let (list, _) = tell(&owner, &["backup", "list"]);
    let newest = id(&list["backups"][0]);
    assert!(
        list["backups"].as_array().unwrap().len() == 1 && second.contains(&newest),
        "{list}"
    );
    let whole = words(&owner, &["backup", "verify", "local", &newest]);
    assert!(whole.contains("is whole"), "{whole}");
    let back = home.files.join("back/new").display().to_string();
    words(
        &owner,
        &["backup", "restore", "local", &newest, "--path", &back],
    );
    assert_eq!(fs::read(home.files.join("back/new/file")).unwrap(), b"data");
    fs::write(
        home.files
            .join("kept")
            .join(&newest)
            .join("archive.tar.zst"),
        "x",
    )
    .unwrap();
    let (damaged, code) = tell(&owner, &["backup", "verify", "local", &newest]);
    assert_eq!(
        (&damaged["whole"], code),
        (&json!(false), Some(4)),
        "{damaged}"
    );
    words(&owner, &["backup", "delete", "local", &newest]);
    let none = words(&owner, &["backup", "list"]);
    assert!(none.starts_with("there are no backups"), "{none}");
    let said = refused(&owner, &["backup", "delete", "local", &newest]);
    assert!(said.contains("there is no backup"), "{said}");
    let audit = words(&owner, &["audit", "list"]);
    assert!(audit.contains("backup delete"), "{audit}");
}

#[test]
fn who_may_not_delete_backups_may_not_do_so_by_a_rule_either() {
    let server = operated("operate", "delete");
    let client = server.client();
    let asked = |more: Value| {
        let mut asked = more;
        asked["target"] = json!("local");
        asked["path"] = json!("/srv");
        client.call("backup_create", asked).send()
    };
    let said = asked(json!({})).failure();
    assert!(said.contains("/nonexistent"), "it runs at once: {said}");
    let proposed = asked(json!({ "keep": { "daily": 7 } })).data();
    assert_eq!(proposed["applied"], false, "{proposed}");
    let change = proposed["change"].as_str().unwrap();
    let shown = words(&server.state_dir(), &["inbox", "show", change]);
    assert!(shown.contains("this deletes every older backup"), "{shown}");
    let (approved, _) = tell(&server.state_dir(), &["inbox", "approve", change, "--wait"]);
    let approved = approved.to_string();
    assert!(
        approved.contains("/nonexistent"),
        "the approved call runs: {approved}"
    );
}

/// Starts a server whose agent has this policy, with this value of `backup`.
fn operated(policy: &str, backup: &str) -> Server {
    let server = server()
        .policy(policy)
        .settings("")
        .bounds(&format!(
            "backup = \"{backup}\"\nbackup_targets = [\"local: /nonexistent\"]\nbackup_paths = [\"/\"]\n"
        ))
        .start();
    let client = server.client();
    wait_until("the helper's classes are known", IN_TIME, || {
        let tools = client.modern("tools/list").send();
        // The short list has no tools for backups; a call shows whether they are there.
        let call = client.call("backup_target_list", json!({})).send();
        tools.status == 200 && call.verdict().1 == 0
    });
    server
}

#[test]
fn without_its_value_in_helper_toml_no_backup_is_deleted() {
    let server = operated("operate", "on");
    let owner = server.state_dir();
    let asked = json!({ "target": "local", "path": "/srv", "keep": { "last": 1 } });
    let proposed = server.client().call("backup_create", asked).send().data();
    let change = proposed["change"].as_str().unwrap();
    let said = tell(&owner, &["inbox", "approve", change, "--wait"])
        .0
        .to_string();
    assert!(
        said.contains("is off in") && said.contains("deleting backups is refused"),
        "{said}"
    );
    let id = json!({ "target": "local", "backup": "web@2026-07-28T09-30-00.000Z" });
    let refused = server.client().call("backup_delete", id).send();
    assert_eq!(refused.verdict().1, -32602, "the tool does not exist");
}
