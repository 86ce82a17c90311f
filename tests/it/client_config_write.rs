//! `gatewren client-config CLIENT --write`: what becomes of the settings files of a client.

use std::fs::{self, File, Permissions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::command::{add_agent, words};
use crate::support::machine::{is_root, skip};
use crate::support::server::{Directory, Server, server};

/// The variables that say where files are, or who runs the command.
const VARIABLES: [&str; 5] = [
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "SUDO_USER",
    "XDG_CONFIG_HOME",
];

/// A client's file as it may be before.
struct Before {
    client: &'static str,
    path: &'static str,
    text: &'static str,
    /// Where the address is afterwards.
    url: &'static str,
}

const COMMENTED: &str = "// My servers\n{\n  \"z\": 1.50, // as it was\n  \"mcpServers\": {\n    /* the other */\n    \
                         \"other\": { \"url\": \"https://o/\" },\n    \"gatewren\": { \"command\": \"old\" },\n  },\n  \"a\": [1, 2],\n}\n";
const PLAIN: &str = "{\n\t\"z\": 1.50,\n\t\"mcpServers\": {\"other\": {\"url\": \"https://o/\"}},\n\t\"a\": [1, 2]\n}";

const CLIENTS: [Before; 10] = [
    Before {
        client: "claude-code",
        path: ".claude.json",
        text: PLAIN,
        url: "/mcpServers/gatewren/url",
    },
    Before {
        client: "codex",
        path: ".codex/config.toml",
        text: "# mine\nmodel = \"m\" # as it was\n\n[mcp_servers.gatewren]\ncommand = \"old\"\n\n# the other\n\
               [mcp_servers.other]\nurl = \"https://o/\"\n",
        url: "/mcp_servers/gatewren/url",
    },
    Before {
        client: "gemini",
        path: ".gemini/settings.json",
        text: COMMENTED,
        url: "/mcpServers/gatewren/httpUrl",
    },
    Before {
        client: "opencode",
        path: ".config/opencode/opencode.json",
        text: "{\n  \"mcp\": { \"other\": { \"url\": \"https://o/\" } }, // as it was\n  \"theme\": \"t\"\n}\n",
        url: "/mcp/gatewren/url",
    },
    Before {
        client: "copilot",
        path: ".copilot/mcp-config.json",
        text: PLAIN,
        url: "/mcpServers/gatewren/url",
    },
    Before {
        client: "cline",
        path: ".cline/data/settings/cline_mcp_settings.json",
        text: PLAIN,
        url: "/mcpServers/gatewren/url",
    },
    Before {
        client: "cursor",
        path: ".cursor/mcp.json",
        text: COMMENTED,
        url: "/mcpServers/gatewren/url",
    },
    Before {
        client: "vscode",
        path: ".config/Code/User/mcp.json",
        text: "{\n\t// as it was\n\t\"inputs\": [{ \"id\": \"other\" }],\n\t\"servers\": { \"other\": { \"url\": \"https://o/\" } }\n}\n",
        url: "/servers/gatewren/url",
    },
    Before {
        client: "windsurf",
        path: ".codeium/windsurf/mcp_config.json",
        text: PLAIN,
        url: "/mcpServers/gatewren/serverUrl",
    },
    Before {
        client: "zed",
        path: ".config/zed/settings.json",
        text: "// Zed settings\n{\n  \"theme\": \"One\", // as it was\n  \"context_servers\": {\n    \"other\": { \"url\": \"https://o/\" },\n  },\n}\n",
        url: "/context_servers/gatewren/url",
    },
];

/// A server, and the home directory of a person on the same machine.
struct Desk {
    home: Directory,
    state: Directory,
    server: Server,
}

impl Desk {
    fn new() -> Self {
        let (home, state) = (Directory::new(), Directory::new());
        let server = server().directory(&state.0).start();
        fs::write(home.join("token"), server.text("token")).unwrap();
        Self {
            home,
            state,
            server,
        }
    }

    /// The address in the files: some clients take no other name of this machine.
    fn url(&self) -> String {
        format!("https://localhost:{}/mcp", self.server.address().port())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        command.arg("client-config").args(args).arg("--write");
        command.arg("--dir").arg(&self.state.0);
        command.env("HOME", &self.home.0);
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        command
    }

    fn with_token(&self, client: &str) -> Command {
        let token = self.home.join("token");
        self.command(&[client, "--token-file", token.to_str().unwrap()])
    }

    /// Writes a client's file with the token; returns what was printed.
    fn write(&self, client: &str) -> String {
        printed(&mut self.with_token(client))
    }

    /// Expects that the command fails; returns why.
    fn refused(&self, client: &str) -> String {
        refused(&mut self.with_token(client))
    }

    /// Makes a file in the home directory, with its folders.
    fn file(&self, path: &str, text: &str) -> PathBuf {
        let file = self.home.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }
}

fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let words = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{words}");
    assert!(stdout.is_empty(), "{stdout:?}");
    words
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().mode() & 0o7777
}

fn set_mode(file: &Path, mode: u32) {
    fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

/// The copy of a file as it was.
fn copy_of(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}.before-gatewren", file.display()))
}

/// The values in a file, whatever its format.
fn values(file: &Path) -> Value {
    let text = text(file);
    if file.extension().is_some_and(|ending| ending == "toml") {
        return serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap();
    }
    // Comments and trailing commas as the files of these tests have them.
    let mut plain = String::new();
    for line in text.lines().filter(|line| !line.trim().starts_with("/*")) {
        let comment = line.starts_with("//").then_some(0);
        let end = comment.or(line.find(" //")).or(line.find("\t//"));
        plain += line[..end.unwrap_or(line.len())].trim();
    }
    let plain = plain.replace(",}", "}").replace(",]", "]");
    serde_json::from_str(&plain).unwrap_or_else(|cause| panic!("{cause}: {plain}"))
}

/// Expects that a text still has what was in it before, in the same order, but for gatewren's old entry.
fn expect_pieces(text: &str, before: &str) {
    let lines = before.lines().filter(|line| !line.contains("\"old\""));
    let mut rest = text;
    for piece in lines.flat_map(|line| line.split(['{', '}', '[', ']'])) {
        let piece = piece.trim().trim_matches(',').trim();
        let found = rest.split_once(piece);
        let found = found.unwrap_or_else(|| panic!("{piece:?} is not in {rest}"));
        rest = found.1;
    }
}

#[test]
fn each_client_gets_its_entry_and_all_else_stays() {
    let desk = Desk::new();
    let token = desk.server.text("token");
    for Before {
        client,
        path,
        text: before,
        url,
    } in CLIENTS
    {
        let file = desk.file(path, before);
        set_mode(&file, 0o640);
        let group = is_root() && chown(&file, None, Some(12345)).is_ok();
        let mut held = File::open(&file).unwrap();
        let printed = desk.write(client);

        let after = values(&file);
        let address = after.pointer(url).unwrap_or(&Value::Null);
        assert_eq!(address, desk.url().as_str(), "{client}: {after}");
        let whole = text(&file);
        let has_token = !["codex", "vscode"].contains(&client);
        assert_eq!(whole.contains(token), has_token, "{client}: {whole}");
        assert!(!whole.contains("\"old\""), "{client}: {whole}");
        expect_pieces(&whole, before);
        assert_eq!(mode(&file), 0o640, "{client}");
        if group {
            assert_eq!(fs::metadata(&file).unwrap().gid(), 12345, "{client}");
        }
        let copy = copy_of(&file);
        assert_eq!(text(&copy), before, "{client}");
        assert_eq!(mode(&copy), 0o640, "{client}");
        let changed = format!(
            "Changed {}; the file before is {}.",
            file.display(),
            copy.display()
        );
        assert!(printed.contains(&changed), "{client}: {printed}");
        assert!(printed.contains(". Check: "), "{client}: {printed}");
        assert!(printed.contains(". Restart "), "{client}: {printed}");
        let chmod = format!("chmod 600 '{}'", file.display());
        assert_eq!(printed.contains(&chmod), has_token, "{client}: {printed}");
        // Who had opened the file reads the old one to its end: it was replaced, not overwritten.
        let mut old = String::new();
        held.read_to_string(&mut old).unwrap();
        assert_eq!(old, before, "{client}");
    }
}

#[test]
fn a_second_run_with_the_same_values_changes_nothing() {
    let desk = Desk::new();
    for Before {
        client,
        path,
        text: before,
        ..
    } in CLIENTS
    {
        let file = desk.file(path, before);
        desk.write(client);
        let whole = text(&file);
        let inode = fs::metadata(&file).unwrap().ino();
        let printed = desk.write(client);
        let unchanged = format!(
            "{} was not changed: it has the entry already",
            file.display()
        );
        assert!(printed.contains(&unchanged), "{client}: {printed}");
        assert!(!printed.contains("Changed "), "{client}: {printed}");
        assert!(!printed.contains(". Restart "), "{client}: {printed}");
        assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "{client}");
        assert_eq!(text(&file), whole, "{client}");
        assert_eq!(text(&copy_of(&file)), before, "{client}");
        let folder = fs::read_dir(file.parent().unwrap()).unwrap();
        let left = folder.filter(|one| {
            one.as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .ends_with(".new")
        });
        assert_eq!(left.count(), 0, "{client}");
    }
}

#[test]
fn a_missing_file_is_private_and_the_certificate_is_saved() {
    let desk = Desk::new();
    let saved = desk.home.join("gatewren-ca.pem");
    for Before {
        client, path, url, ..
    } in CLIENTS
    {
        let printed = desk.write(client);
        let file = desk.home.join(path);
        let address = values(&file).pointer(url).cloned();
        assert_eq!(address, Some(desk.url().into()), "{client}");
        assert_eq!(mode(&file), 0o600, "{client}");
        assert!(!copy_of(&file).exists(), "{client}");
        let created = format!("Created {}.\n", file.display());
        assert!(printed.contains(&created), "{client}: {printed}");
        assert!(!printed.contains("chmod"), "{client}: {printed}");
        // It is saved once, and no step asks a person to fetch it.
        assert_eq!(text(&saved), text(Path::new(desk.server.text("ca"))));
        let is_first = client == CLIENTS[0].client;
        let created = format!("Created {}.\n", saved.display());
        assert_eq!(printed.contains(&created), is_first, "{client}: {printed}");
        assert!(!printed.contains("curl -k"), "{client}: {printed}");
    }
    let settings = values(&desk.home.join(".claude/settings.json"));
    assert_eq!(
        settings["env"]["NODE_EXTRA_CA_CERTS"],
        saved.to_str().unwrap()
    );

    fs::write(&saved, "another\n").unwrap();
    let words = desk.refused("cursor");
    assert!(words.contains("has another certificate"), "{words}");
    assert_eq!(text(&saved), "another\n");
}

#[test]
fn a_link_stays_and_the_file_that_it_names_is_replaced() {
    let desk = Desk::new();
    let file = desk.file("dotfiles/cursor.json", "{}");
    let folder = desk.home.join("other");
    fs::create_dir(&folder).unwrap();
    // Both the file and a folder on the way are links.
    symlink("other", desk.home.join(".cursor")).unwrap();
    let link = folder.join("mcp.json");
    symlink("../dotfiles/cursor.json", &link).unwrap();
    let printed = desk.write("cursor");
    assert_eq!(
        fs::read_link(&link).unwrap(),
        Path::new("../dotfiles/cursor.json")
    );
    assert!(values(&file)["mcpServers"]["gatewren"].is_object());
    assert_eq!(text(&copy_of(&file)), "{}");
    let copy = copy_of(&file).canonicalize().unwrap();
    assert!(printed.contains(copy.to_str().unwrap()), "{printed}");

    fs::remove_file(&file).unwrap();
    let words = desk.refused("cursor");
    assert!(
        words.contains("cannot follow") && words.contains("Nothing was changed"),
        "{words}"
    );
    assert!(!file.exists() && link.is_symlink());
}

#[test]
fn what_cannot_be_edited_is_left_alone() {
    let desk = Desk::new();
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(4 << 20));
    for (client, path, before, why) in [
        (
            "cursor",
            ".cursor/mcp.json",
            &b"{\"a\": 1"[..],
            "it is not JSON (Unterminated object on line 1 column 1)",
        ),
        (
            "zed",
            ".config/zed/settings.json",
            b"// c\n[]\n",
            "it is not a JSON object",
        ),
        ("codex", ".codex/config.toml", b"a = 1\nb =\n", "on line 2)"),
        (
            "gemini",
            ".gemini/settings.json",
            b"{\"mcpServers\": 3}",
            "\"mcpServers\" has an unknown form",
        ),
        (
            "copilot",
            ".copilot/mcp-config.json",
            b"{\"a\": \"\xff\"}",
            "it is not UTF-8",
        ),
        (
            "windsurf",
            ".codeium/windsurf/mcp_config.json",
            long.as_bytes(),
            "it is longer than 4194304 bytes",
        ),
    ] {
        let file = desk.file(path, "");
        fs::write(&file, before).unwrap();
        let words = desk.refused(client);
        let start = format!("cannot edit {}: ", file.display());
        assert!(
            words.contains(&start) && words.contains(why),
            "{client}: {words}"
        );
        let advice = format!("or take the steps of `gatewren client-config {client}`");
        assert!(words.contains(&advice), "{client}: {words}");
        assert_eq!(fs::read(&file).unwrap(), before, "{client}");
        assert!(!copy_of(&file).exists(), "{client}");
        // Nor is anything else written.
        assert!(!desk.home.join("gatewren-ca.pem").exists(), "{client}");
    }
}

#[test]
fn only_regular_files_of_known_clients_are_edited() {
    let desk = Desk::new();
    let file = desk.home.join(".cursor/mcp.json");
    fs::create_dir_all(&file).unwrap();
    let words = desk.refused("cursor");
    assert!(words.contains("it is not a regular file"), "{words}");
    fs::remove_dir(&file).unwrap();
    let made = Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    let words = desk.refused("cursor");
    assert!(words.contains("it is not a regular file"), "{words}");

    let words = desk.refused("n8n");
    let clients = CLIENTS.map(|one| one.client);
    assert!(
        words.contains("cannot edit a file of n8n, only those of "),
        "{words}"
    );
    assert!(
        clients.iter().all(|client| words.contains(client)),
        "{words}"
    );
    let words = refused(&mut desk.command(&["zed"]));
    assert!(words.contains("--token-file FILE"), "{words}");
}

#[test]
fn claude_codes_own_authorities_are_not_replaced() {
    let desk = Desk::new();
    let ca = text(Path::new(desk.server.text("ca")));
    let both = desk.file("work.pem", "the authority at work\n");
    let before = json!({ "env": { "NODE_EXTRA_CA_CERTS": both }, "model": "m" }).to_string();
    let settings = desk.file(".claude/settings.json", &before);
    let words = desk.refused("claude-code");
    assert!(
        words.contains("\"NODE_EXTRA_CA_CERTS\" names another file")
            && words.contains("--authority"),
        "{words}"
    );
    assert_eq!(text(&settings), before);
    assert!(
        !desk.home.join(".claude.json").exists(),
        "half of it was written"
    );

    fs::write(&both, format!("the authority at work\n{ca}")).unwrap();
    let mut command = desk.with_token("claude-code");
    command
        .current_dir(&desk.home.0)
        .args(["--authority", "work.pem"]);
    let printed = printed(&mut command);
    assert!(
        printed.contains(".claude/settings.json was not changed"),
        "{printed}"
    );
    assert_eq!(text(&settings), before);
    let entry = &values(&desk.home.join(".claude.json"))["mcpServers"]["gatewren"];
    assert_eq!(entry["type"], "http");
}

#[test]
fn a_new_token_is_made_only_if_it_can_be_written() {
    let desk = Desk::new();
    add_agent(&desk.state.0, "laptop", &["--policy", "operate"]);
    let mut command = desk.command(&["cursor", "--agent", "laptop", "--new-token", "--json"]);
    let file = desk.file(".cursor/mcp.json", "{");
    refused(&mut command);
    let rotations = || {
        let args = ["audit", "list", "--tool", "agent rotate", "--json"];
        words(&desk.state.0, &args)
    };
    assert_eq!(rotations(), "", "the old token is revoked");

    fs::write(&file, "{}").unwrap();
    let output: Value = serde_json::from_str(&printed(&mut command)).unwrap();
    assert!(
        rotations().contains("\"outcome\":\"ok\""),
        "{}",
        rotations()
    );
    let bearer = &values(&file)["mcpServers"]["gatewren"]["headers"]["Authorization"];
    let token = bearer.as_str().unwrap().strip_prefix("Bearer ").unwrap();
    let client = desk.server.client().with_token(token);
    assert_eq!(client.modern("tools/list").send().status, 200);

    assert_eq!(output["agent"], "laptop");
    assert!(!output.to_string().contains(token), "{output}");
    let files = output["files"].as_array().unwrap();
    assert_eq!(
        files[0]["file"],
        desk.home.join("gatewren-ca.pem").to_str().unwrap()
    );
    assert_eq!(files[0]["change"], "created");
    assert_eq!(files[1]["change"], "changed");
    assert_eq!(files[1]["copy"], copy_of(&file).to_str().unwrap());
    assert_eq!(files[1]["exposes_token"], mode(&file) & 0o077 != 0);
    assert_eq!(
        output["steps"].as_array().unwrap().last().unwrap()["kind"],
        "check"
    );
}

#[test]
fn the_variables_of_a_client_name_its_folder() {
    let desk = Desk::new();
    for (client, variable, name) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("copilot", "COPILOT_HOME", "mcp-config.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
    ] {
        let folder = desk.home.join(variable);
        let mut command = desk.with_token(client);
        printed(command.env(variable, &folder));
        assert!(text(&folder.join(name)).contains("gatewren"), "{client}");
    }
    assert!(!desk.home.join(".claude.json").exists() && !desk.home.join(".config").exists());
}

/// A user other than the one of the test.
const OTHER: u32 = 65533;

#[test]
fn root_edits_no_file_of_another_user() {
    if !is_root() {
        return skip("only root can give files to other users");
    }
    let desk = Desk::new();
    let words = refused(desk.with_token("cursor").env("SUDO_USER", "alice"));
    assert!(words.contains("run it as alice, without sudo"), "{words}");
    assert!(!desk.home.join(".cursor").exists());

    // The file, its folder, a folder above, and what a link leads to.
    let file = desk.file("of-other/.cursor/mcp.json", "{}");
    let folder = file.parent().unwrap();
    let above = folder.parent().unwrap();
    symlink(folder, desk.home.join(".cursor")).unwrap();
    for place in [&file, folder, above] {
        chown(place, Some(OTHER), Some(OTHER)).unwrap();
        let words = desk.refused("cursor");
        let start = format!(
            "{} belongs to the user with the id {OTHER}",
            place.display()
        );
        assert!(words.contains(&start), "{words}");
        assert_eq!(text(&file), "{}");
        chown(place, Some(0), Some(0)).unwrap();
    }
    set_mode(above, 0o777);
    let words = desk.refused("cursor");
    assert!(words.contains("every user may write to"), "{words}");
    set_mode(above, 0o755);
    desk.write("cursor");
    assert!(text(&file).contains("gatewren"));

    // The server of the service belongs to its own user: root reads no secret of it on the way.
    chown(&desk.state.0, Some(OTHER), Some(OTHER)).unwrap();
    let words = refused(&mut desk.command(&["cursor", "--agent", "try"]));
    assert!(words.contains("gatewren agent rotate try"), "{words}");
    fs::remove_file(desk.home.join("gatewren-ca.pem")).unwrap();
    let printed = desk.write("windsurf");
    assert!(printed.contains("curl -ko"), "{printed}");
    assert!(!desk.home.join("gatewren-ca.pem").exists());
}

#[test]
fn a_user_who_may_not_read_the_state_directory_saves_the_certificate_by_hand() {
    if !is_root() {
        return skip("only root can run a command as another user");
    }
    let desk = Desk::new();
    set_mode(&desk.state.0, 0o700);
    let file = desk.file(".cursor/mcp.json", "{}");
    for place in [&desk.home.0, file.parent().unwrap(), &file] {
        chown(place, Some(OTHER), Some(OTHER)).unwrap();
    }
    set_mode(&file, 0o600);
    let printed = printed(desk.with_token("cursor").uid(OTHER).gid(OTHER));
    assert!(values(&file)["mcpServers"]["gatewren"].is_object());
    for file in [&file, &copy_of(&file)] {
        let facts = fs::metadata(file).unwrap();
        assert_eq!(
            (facts.uid(), facts.gid(), mode(file)),
            (OTHER, OTHER, 0o600)
        );
    }
    let saved = desk.home.join("gatewren-ca.pem");
    let step = format!("curl -ko '{}'", saved.display());
    assert!(printed.contains(&step), "{printed}");
    assert!(!saved.exists());

    // A file of root in the user's home is not the user's.
    chown(&file, Some(0), Some(0)).unwrap();
    let mut command = desk.with_token("cursor");
    let words = refused(command.uid(OTHER).gid(OTHER).arg("--host").arg("box.lan"));
    assert!(
        words.contains("belongs to the user with the id 0"),
        "{words}"
    );
}
