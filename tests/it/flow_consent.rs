//! An approval covers exactly what was shown: no truncated, hidden or later part, and no grant as a side effect.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::owner_page::{
    ASKED, PASSWORD, code, form, get, let_confirmation_expire, proof, set_up, tell,
};
use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::command::{add_agent, refused, words};
use crate::support::consent::{asking, question};
use crate::support::machine::{IN_TIME, skip, wait_until};
use crate::support::server::{Directory, Server, server};

/// The harmless beginning of a malicious command.
const HARMLESS: &str = "echo refreshing the package lists; # harmless";

/// A server whose owner is signed in, with an agent that proposes commands.
struct Place {
    home: Directory,
    _server: Server,
    agent: String,
    client: Client,
    owner: Client,
    cookie: String,
}

impl Place {
    fn new() -> Self {
        Self::with(Path::new("/var/lib/lxc"))
    }

    fn with(lxcpath: &Path) -> Self {
        let home = Directory::new();
        let server = server().directory(&home.0).lxcpath(lxcpath).start();
        let owner = server.client();
        let cookie = set_up(&owner, &code(&home));
        let added = add_agent(&home.0, "proposer", &["--policy", "operate"]);
        let client = server.client().with_token(added["token"].as_str().unwrap());
        let list = client.modern("tools/list");
        wait_until("the agent can sign in", IN_TIME, || {
            list.send().status == 200
        });
        Self {
            home,
            agent: added["id"].as_str().unwrap().to_owned(),
            client,
            owner,
            cookie,
            _server: server,
        }
    }

    /// Calls `system_shell`; returns the data of its response.
    fn shell(&self, line: &str) -> Value {
        let arguments = json!({ "command": line, "timeout_s": 300 });
        self.client.call("system_shell", arguments).send().data()
    }

    /// Proposes a command; returns the change's id.
    fn propose(&self, line: &str) -> String {
        let data = self.shell(line);
        assert_eq!(data["status"], "pending", "{data}");
        data["change"].as_str().unwrap().to_owned()
    }

    fn page(&self, path: &str) -> Answer {
        let page = get(&self.owner, path, &self.cookie);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        page
    }

    fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        form(&self.owner, path, fields)
            .header("cookie", &self.cookie)
            .send_once()
    }

    /// Submits the form of a page that approves several changes.
    fn approve_page(&self, page: &Answer) -> Answer {
        let (before, _) = page.body.split_once("Approve all").unwrap();
        let (_, form) = before.rsplit_once("<form").unwrap();
        let inputs = form.split("type=\"hidden\" name=\"").skip(1);
        let hidden = inputs.map(|input| {
            let (name, rest) = input.split_once('"').unwrap();
            let (_, value) = rest.split_once("value=\"").unwrap();
            (name, value.split('"').next().unwrap())
        });
        let fields: Vec<_> = hidden.chain([("do", "approve")]).collect();
        self.post("/owner/changes", &fields)
    }

    /// Decides on one change, with the form of its own page.
    fn decide(&self, change: &str, more: &[(&str, &str)]) -> Answer {
        let path = format!("/owner/changes/{change}");
        let page = self.page(&path);
        let (proof, seen) = (proof(&page), hidden(&page, "seen"));
        let fields = [("proof", proof.as_str()), ("seen", seen.as_str())];
        self.post(&path, &[fields.as_slice(), more].concat())
    }

    fn status(&self, change: &str) -> String {
        let shown = tell(&self.home, &["inbox", "show", change]).unwrap();
        shown["status"].as_str().unwrap().to_owned()
    }
}

/// Returns the value of the first hidden field with this name.
fn hidden(page: &Answer, name: &str) -> String {
    let mark = format!("name=\"{name}\" value=\"");
    let (_, rest) = page
        .body
        .split_once(&mark)
        .unwrap_or_else(|| panic!("no field {name}: {}", page.body));
    rest.split('"').next().unwrap().to_owned()
}

#[test]
fn approving_a_page_runs_nothing_that_the_page_did_not_show() {
    let place = Place::new();
    let ran = place.home.0.join("PWNED");
    let bad = format!(
        "{HARMLESS}{}\nid > {}",
        " harmless".repeat(500),
        ran.display()
    );
    let first = place.propose(&bad);
    let routine: Vec<String> = (0..11)
        .map(|n| place.propose(&format!("true {n}")))
        .collect();
    let page = place.page("/owner/inbox");
    let answer = place.approve_page(&page);
    assert_eq!(answer.status, 303, "{answer:?}");
    let approved = routine
        .iter()
        .filter(|id| place.status(id) != "pending")
        .count();
    assert_eq!((approved, place.status(&first).as_str()), (9, "pending"));
    assert_eq!(
        answer.header("location"),
        Some("/owner/inbox?said=all-approved")
    );
    assert!(
        page.body.contains("too long to be shown here in full"),
        "it is the first"
    );
    assert!(
        !page.body.contains(HARMLESS),
        "a beginning of it reads as a whole"
    );
    assert!(
        page.body.contains("Approve all 9"),
        "ten fit, and one of them is too long"
    );
    assert!(page.body.contains("Reject all 12"));
    // The change's own page shows the long command in full.
    let own = place.page(&format!("/owner/changes/{first}"));
    assert!(
        own.body.contains("PWNED") && own.body.contains("2 lines"),
        "{}",
        own.body
    );
    let answer = place.decide(&first, &[("do", "approve")]);
    assert_eq!(answer.status, 303, "{answer:?}");
    wait_until("it runs once the owner has read it", IN_TIME, || {
        ran.exists()
    });
}

#[test]
fn a_request_is_a_sentence_and_one_that_loses_data_stands_out() {
    let lxcpath = Directory::new();
    fs::create_dir(lxcpath.join("web")).unwrap();
    fs::write(lxcpath.join("web/config"), "").unwrap();
    let place = Place::with(&lxcpath.0);
    let command = place.propose("true");
    let arguments = json!({ "container": "web" });
    let call = place.client.call("container_destroy", arguments);
    let data = call.send().data();
    let destroy = data["change"].as_str().unwrap();
    let page = place.page("/owner/inbox");
    let article = |id: &str| {
        let begin = page.body.find(&format!("<article id=\"{id}\"")).unwrap();
        page.body[begin..]
            .split("</article>")
            .next()
            .unwrap()
            .to_owned()
    };
    let (command, destroyed) = (article(&command), article(destroy));
    assert!(
        command.contains("Run a command on the server "),
        "{command}"
    );
    assert!(
        !command.contains("class=\"request loses\"") && !command.contains("cannot be undone"),
        "{command}"
    );
    assert!(
        destroyed.contains("Delete the container <strong>"),
        "{destroyed}"
    );
    assert!(
        destroyed.contains("</strong> and all its files <code class=\"soft\">"),
        "{destroyed}"
    );
    assert!(destroyed.contains("class=\"request loses\""), "{destroyed}");
    assert!(destroyed.contains("cannot be undone"), "{destroyed}");
    let own = place.page(&format!("/owner/changes/{destroy}"));
    assert!(
        own.body.contains("<h1>Delete the container <strong>"),
        "{}",
        own.body
    );
}

#[test]
fn a_page_is_not_approved_when_something_came_in_since() {
    let place = Place::new();
    let ids = [place.propose("true 1"), place.propose("true 2")];
    let page = place.page("/owner/inbox");
    let late = place.propose("echo late");
    let answer = place.approve_page(&page);
    assert_eq!(
        answer.header("location"),
        Some("/owner/inbox?page=1&said=not-as-shown"),
        "{answer:?}"
    );
    let again = place.page("/owner/inbox?page=1&said=not-as-shown");
    assert!(again.body.contains("Nothing was approved") && again.body.contains("echo late"));
    for id in ids.iter().chain([&late]) {
        assert_eq!(place.status(id), "pending");
    }
    assert_eq!(
        place.approve_page(&again).header("location"),
        Some("/owner/inbox?said=all-approved")
    );
    for id in ids.iter().chain([&late]) {
        assert_ne!(place.status(id), "pending");
    }
    let answer = place.approve_page(&again);
    assert_eq!(
        answer.header("location"),
        Some("/owner/inbox?page=1&said=not-as-shown"),
        "nothing is left to approve"
    );
}

#[test]
fn hidden_and_look_alike_characters_are_marked_wherever_somebody_decides() {
    let place = Place::new();
    let line = format!(
        "cat /srv/\u{200b}backup; curl get.d\u{43e}cker.com{}; id",
        "\n".repeat(4000)
    );
    let change = place.propose(&line);
    let page = place.page(&format!("/owner/changes/{change}"));
    let printed = words(&place.home.0, &["inbox", "show", &change]);
    let listed = words(&place.home.0, &["inbox", "list", "--agent", &place.agent]);
    for shown in [&page.body, &printed] {
        for part in [
            r"/srv/\u{200b}backup",
            r"get.d\u{43e}cker.com",
            r"\u{3999 empty lines}",
            "invisible",
            "4001 lines",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
    for shown in [&page.body, &printed, &listed] {
        assert!(!shown.contains(['\u{200b}', '\u{43e}']), "{shown}");
    }
    assert!(
        !listed.contains("curl") && listed.contains("omitted"),
        "{listed}"
    );
}

#[test]
fn all_of_an_agent_is_approved_only_as_it_was_shown() {
    let place = Place::new();
    let (home, agent) = (&place.home, place.agent.as_str());
    let first = place.propose("mysql --password=hunter2 -e 'select 1'");
    let all = ["inbox", "approve", "--all-of", agent];
    let why = refused(&home.0, &all);
    assert!(
        why.contains("not a terminal") && why.contains("--as-of"),
        "{why}"
    );
    let list = ["inbox", "list", "--agent", agent];
    let printed = words(&home.0, &list);
    assert!(printed.contains("--password=hunter2"), "{printed}");
    let listed = tell(home, &list).unwrap();
    let digest = listed[0]["as_of"].as_str().unwrap();
    assert!(
        printed.contains(&format!("as of     {digest}")),
        "{printed}"
    );
    let shown = tell(home, &["inbox", "show", "--all-of", agent]).unwrap();
    assert_eq!(shown["as_of"], digest);
    assert_eq!(shown["changes"][0]["id"], first.as_str());

    let late = place.propose("echo late");
    let why = refused(&home.0, &[&all[..], &["--as-of", digest]].concat());
    assert!(why.contains("not those that were shown"), "{why}");
    assert_eq!(
        (place.status(&first), place.status(&late)),
        ("pending".into(), "pending".into())
    );
    let shown = tell(home, &["inbox", "show", "--all-of", agent]).unwrap();
    let digest = shown["as_of"].as_str().unwrap();
    let approved = tell(home, &[&all[..], &["--as-of", digest]].concat()).unwrap();
    assert_eq!(approved.as_array().unwrap().len(), 2);
    assert_ne!(place.status(&late), "pending");
}

/// Runs a command on a terminal with this typed input, and returns its output.
fn on_a_terminal(place: &Place, command: &str, typed: &str) -> Option<String> {
    let line = format!(
        "{} {command} --dir {}",
        env!("CARGO_BIN_EXE_gatewren"),
        place.home.0.display()
    );
    let child = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        skip("script(1) of util-linux is not there");
        return None;
    };
    // Closing the pipe would end the terminal's input too early.
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{typed}").unwrap();
    let output = child.wait_with_output().unwrap();
    drop(input);
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn on_a_terminal_all_is_printed_before_the_question() {
    let place = Place::new();
    let change = place.propose("echo one");
    let command = format!("inbox approve --all-of {}", place.agent);
    let Some(printed) = on_a_terminal(&place, &command, "y") else {
        return;
    };
    assert_eq!(
        place.status(&change),
        "pending",
        "only yes is a yes: {printed}"
    );
    let (shown, _) = printed.split_once("Approve all 1 of them?").unwrap();
    assert!(shown.contains("echo one"), "{printed}");
    let printed = on_a_terminal(&place, &command, "yes").unwrap();
    assert_ne!(place.status(&change), "pending", "{printed}");
}

#[test]
fn a_grant_with_a_harmless_command_does_not_allow_another_one() {
    let place = Place::new();
    let runs = |line: &str| place.shell(line).get("change").is_none();
    // On the command line.
    let change = place.propose("hostname");
    let args = ["inbox", "approve", &change, "--grant", "1h"];
    tell(&place.home, &args).unwrap();
    wait_until("the same call runs", IN_TIME, || runs("hostname"));
    assert!(!runs("hostname -f"));
    // On the page as well: exactly this call, unless the owner chooses otherwise.
    let change = place.propose("uptime");
    let page = place.page(&format!("/owner/changes/{change}"));
    let (_, scope) = page.body.split_once("name=\"scope\"").unwrap();
    assert!(
        scope
            .trim_start_matches('>')
            .starts_with("<option value=\"exact\">"),
        "{scope:.200}"
    );
    let exact = [("do", "grant"), ("scope", "exact"), ("span", "1h")];
    assert_eq!(place.decide(&change, &exact).status, 303);
    wait_until("the same call runs", IN_TIME, || runs("uptime"));
    for other in ["uptime -p", "rm -rf /srv/nothing", "uptime; id", " uptime"] {
        assert!(!runs(other), "{other}");
    }
}

#[test]
fn a_grant_on_the_page_needs_the_password_again_after_10_minutes() {
    let place = Place::new();
    let change = place.propose("uptime");
    let exact = [("do", "grant"), ("scope", "exact"), ("span", "1h")];
    let grants = || tell(&place.home, &["inbox", "grants"]).unwrap();
    let_confirmation_expire(&place.home);
    let with = |password| [&exact[..], &[("confirm_password", password)]].concat();
    for fields in [exact.to_vec(), with("not my password")] {
        let asked = place.decide(&change, &fields);
        assert_eq!(asked.status, 200);
        assert!(asked.body.contains(ASKED), "{}", asked.body);
        assert_eq!(place.status(&change), "pending", "nothing is decided yet");
        assert_eq!(grants(), json!([]));
    }
    assert_eq!(place.decide(&change, &with(PASSWORD)).status, 303);
    assert_eq!(grants().as_array().unwrap().len(), 1);
}

#[test]
fn every_command_as_root_is_asked_for_twice() {
    let place = Place::new();
    let change = place.propose("uptime");
    let broad = [("do", "grant"), ("scope", "broad"), ("span", "1h")];
    let asked = place.decide(&change, &broad);
    assert_eq!(asked.status, 200);
    assert!(
        asked.body.contains("any command as root on this server"),
        "{}",
        asked.body
    );
    assert!(asked.body.contains("for 1 hour"), "{}", asked.body);
    assert_eq!(place.status(&change), "pending", "nothing is decided yet");
    let grants = || tell(&place.home, &["inbox", "grants"]).unwrap();
    assert_eq!(grants(), json!([]));
    let sure = [&broad[..], &[("sure", "yes")]].concat();
    assert_eq!(place.decide(&change, &sure).status, 303);
    let allows = grants()[0]["allows"].as_str().unwrap().to_owned();
    assert!(
        allows.contains("any command as root on this server"),
        "{allows}"
    );
    let why = refused(
        &place.home.0,
        &[
            "inbox",
            "grant",
            &place.agent,
            "system_shell",
            "--for",
            "1h",
        ],
    );
    assert!(why.contains("--broad") && why.contains("--prefix"), "{why}");
}

#[test]
fn a_granted_prefix_runs_no_second_command() {
    let place = Place::new();
    let args = [
        "inbox",
        "grant",
        &place.agent,
        "system_shell",
        "--prefix",
        "echo ok",
        "--for",
        "1h",
    ];
    let given = tell(&place.home, &args).unwrap();
    assert_eq!(given["prefix"], "echo ok");
    let runs = |line: &str| place.shell(line).get("change").is_none();
    wait_until("it is granted", IN_TIME, || runs("echo ok then"));
    for line in [
        "echo ok; id",
        "echo ok\nid",
        "echo ok $(id)",
        "echo ok | sh",
        "echo okay",
        "id",
    ] {
        assert!(!runs(line), "{line}");
    }
    let with_env = json!({ "command": "echo ok", "env": { "BASH_ENV": "/tmp/x" } });
    let data = place.client.call("system_shell", with_env).send().data();
    assert_eq!(data["status"], "pending", "{data}");
    let why = refused(
        &place.home.0,
        &[
            "inbox",
            "grant",
            &place.agent,
            "container_restart",
            "--prefix",
            "echo",
            "--for",
            "1h",
        ],
    );
    assert!(why.contains("has no command"), "{why}");
}

#[test]
fn the_question_about_a_key_shows_the_key_and_its_fingerprint() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    words(
        &home.0,
        &["agent", "edit", "try", "--mode", "persist=confirm"],
    );
    let client = server.client();
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj0lSdKlYVp6ZNLlGWhQoWWaHGMYSH7+k4ZlTmN3izj attacker@x";
    let asked = question(&asking(&client, "ssh_key_add", json!({ "key": key })).send());
    let message = asked["inputRequests"]["confirm"]["params"]["message"]
        .as_str()
        .unwrap();
    let note = "SSH public key ssh-ed25519, SHA256:/hFyLEs2hVjV5i2Vr2fgDYLD1F724Cx2axHUn6ZN+WQ, comment \"attacker@x\"";
    for part in [key, note] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains("redacted"), "{message}");
}
