//! The page of a container with what its real runtime has: what it printed, its snapshots and its backups, of LXC, Docker
//! and Podman.

use std::fs;

use serde_json::{Value, json};

use crate::owner_page::{get, set_up};
use crate::support::agents::admit_to_everything;
use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::container::Containers;
use crate::support::engines::{Engine, EngineKind};
use crate::support::machine::{IN_TIME, marker, wait_until};
use crate::support::server::{Directory, Server, server};

/// The main process of a container of an engine: more lines than the page shows, with HTML in them.
const PRINTING: &str =
    "n=0; while [ $n -lt 40 ]; do n=$((n+1)); echo \"line-$n <b id=loud>\"; done; exec sleep 1000";

/// The backups of each container: more than the page lists.
const BACKUPS: usize = 12;

/// A server with a backup target, an agent that may do everything, and the owner's cookie.
struct Home {
    server: Server,
    admin: Client,
    cookie: String,
    _directory: Directory,
}

impl Home {
    fn new(bounds: &str, engine: Option<&Engine>, settings: &str) -> Self {
        let directory = Directory::new();
        let kept = directory.join("kept");
        fs::create_dir(&kept).unwrap();
        let targets = format!(
            "backup = \"delete\"\nbackup_targets = [\"local: {}\"]\n{bounds}",
            kept.display()
        );
        let server = server().policy("admin").settings(settings).bounds(&targets);
        let server = match engine {
            Some(engine) => server.run_inside(engine),
            None => server,
        };
        let server = server.start();
        let said = tell_by(&server.settings_file(), &["owner", "setup"]);
        let cookie = set_up(&server.client(), said["code"].as_str().unwrap());
        Self {
            admin: admit_to_everything(&server, "guest", &[]),
            server,
            cookie,
            _directory: directory,
        }
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        self.admin.call(tool, arguments).send().data()
    }

    fn page(&self, container: &str) -> String {
        let path = format!("/owner/containers/{}", container.replace(':', "%3A"));
        let page = get(&self.server.client(), &path, &self.cookie);
        assert_eq!(page.status, 200, "{page:?}");
        page.body
    }

    /// Makes the backups, and checks that the page lists the newest and counts the others.
    fn check_backups(&self, container: &str) {
        let asked = json!({ "target": "local", "container": container });
        let made =
            (0..BACKUPS).map(|_| self.call("backup_create", asked.clone())["backup"].clone());
        let made: Vec<String> = made.map(|id| id.as_str().unwrap().to_owned()).collect();
        let page = self.page(container);
        let listed = made.iter().filter(|id| page.contains(id.as_str())).count();
        assert_eq!(listed, 10, "{page}");
        assert!(
            page.contains(made.last().unwrap()),
            "not the newest: {page}"
        );
        assert!(page.contains("<li>+2</li>"), "{page}");
    }
}

#[test]
fn the_page_of_a_container_of_an_engine_has_what_it_printed_and_its_backups() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let (name, socket) = (engine.kind.name(), engine.socket());
        let bounds = format!(
            "runtimes = [\"{name}\"]\n{name}_socket = \"{}\"\n",
            socket.display()
        );
        let home = Home::new(&bounds, Some(&engine), "");
        let own = format!("it-{}", marker());
        let container = engine.run_line(&own, PRINTING);
        let reference = container.reference();
        wait_until("the observer knows it", IN_TIME, || {
            let path = format!("/owner/containers/{}", reference.replace(':', "%3A"));
            get(&home.server.client(), &path, &home.cookie).status == 200
        });
        wait_until("the log is whole", IN_TIME, || {
            home.page(&reference).contains("line-40")
        });
        let page = home.page(&reference);
        assert!(page.contains("line-40 &lt;b id=loud&gt;"), "{page}");
        assert!(!page.contains("<b id=loud>"), "{page}");
        assert!(
            !page.contains("line-10 "),
            "more lines than the last 30: {page}"
        );
        home.check_backups(&reference);
    }
}

#[test]
fn the_page_of_a_container_of_lxc_has_its_snapshots_and_backups() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    containers.make("wren");
    let settings = format!("[lxc]\nlxcpath = \"{}\"\n", containers.lxcpath().display());
    let home = Home::new("lxc_manage = \"on\"\n", None, &settings);
    let comment = "before <i>it</i>";
    for _ in 0..11 {
        let kept = json!({ "container": "wren", "comment": comment });
        home.call("container_snapshot_create", kept);
    }
    let page = home.page("wren");
    assert!(
        page.contains("snap10 before &lt;i&gt;it&lt;/i&gt;"),
        "{page}"
    );
    assert!(
        !page.contains("snap0 "),
        "older than the ten newest: {page}"
    );
    assert!(page.contains("<li>+1</li>"), "{page}");
    home.check_backups("wren");
}
