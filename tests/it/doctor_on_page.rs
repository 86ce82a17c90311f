//! What `doctor` found is on the owner's Home until it runs again.

use crate::owner_page::{code, get, house, set_up};
use crate::support::command::{add_agent, tell};
use crate::support::server::Directory;

#[test]
fn home_shows_what_doctor_found_when_it_last_ran() {
    let home = Directory::new();
    let server = house(&home);
    let client = server.client();
    let cookie = set_up(&client, &code(&home));
    let page = || get(&client, "/owner/home", &cookie).body;
    assert!(!page().contains("ound by doctor") && !page().contains("Doctor found"));

    add_agent(
        &home.0,
        "brief",
        &["--policy", "observe", "--expires", "1d"],
    );
    let (said, _) = tell(&home.0, &["doctor", "--no-self-test"]);
    let findings = said["findings"].as_array().unwrap().iter();
    let needs = findings.filter(|one| one["state"] == "warning" || one["state"] == "problem");
    let needs: Vec<_> = needs.collect();
    assert!(
        !needs.is_empty(),
        "a token that ends tomorrow is a warning: {said}"
    );
    let shown = page();
    assert!(
        shown.contains(&format!("Found by doctor: {}", needs.len())),
        "{shown}"
    );
    assert!(shown.contains("brief"), "{shown}");

    assert_eq!(tell(&home.0, &["agent", "revoke", "brief"]).1, Some(0));
    let (said, _) = tell(&home.0, &["doctor", "--no-self-test"]);
    let count = |state: &str| said[state].as_u64().unwrap();
    let left = count("problems") + count("warnings");
    let words = match left {
        0 => "Doctor found nothing to do".to_owned(),
        some => format!("Found by doctor: {some}"),
    };
    assert!(left < needs.len() as u64, "{said}");
    assert!(page().contains(&words), "{words}: {}", page());
}
