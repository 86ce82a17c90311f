//! Notifies the owner of problems of disks, arrays and pools: once for each problem.

use std::time::Duration;

use gatewren_base::config::Reach;
use gatewren_base::sys::{Requester, on_behalf_of};
use gatewren_host::backends::Storage;
use gatewren_store::state::{Author, KeptNotification, Notice, Notifications, State};

/// The interval of the checks. A sleeping disk is not woken.
const EVERY: Duration = Duration::from_hours(6);

/// The maximum number of problems in the notifications of one check; those beyond are counted.
const MAX_PROBLEMS: usize = 10;

/// The title of such a notification.
const TITLE: &str = "a disk has a problem";

/// Checks the disks and adds the notifications, while it runs.
pub async fn notify_of_disks(storage: Storage, state: State) {
    let notifications = Notifications::new(state);
    loop {
        let checked = on_behalf_of(Requester::Observer, storage.health("observer")).await;
        match checked {
            Ok(health) => add_notices(&notifications, &health.problems).await,
            // helper.toml may not allow it, or the host may have no such disk.
            Err(cause) => tracing::debug!(%cause, "the disks were not checked"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Adds a notification for each problem without one. They are kept, so a restart repeats none.
async fn add_notices(notifications: &Notifications, problems: &[String]) {
    let kept = notifications.list("", &Reach::everything());
    let mut new: Vec<Notice> = problems.iter().map(|one| notice(one)).collect();
    new.retain(|notice| !kept.iter().any(|one| is_same(one, notice)));
    let more = new.len().saturating_sub(MAX_PROBLEMS);
    new.truncate(MAX_PROBLEMS);
    if more > 0 {
        new.push(notice(&format!("{more} more problems of disks")));
    }
    for notice in new {
        if let Err(cause) = notifications.add(&Author::observer(), notice).await {
            tracing::warn!(%cause, "cannot store a notification");
        }
    }
}

fn notice(problem: &str) -> Notice {
    Notice {
        container: None,
        level: "error",
        title: TITLE.to_owned(),
        message: format!("{problem}. disk_health shows the details. Check the backups."),
        change: None,
    }
}

fn is_same(one: &KeptNotification, notice: &Notice) -> bool {
    let is = |key: &str, text: &str| one.value.get(key).is_some_and(|value| value == text);
    is("title", &notice.title) && is("message", &notice.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn each_problem_of_a_disk_is_told_of_once_also_after_a_restart() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let problem = |n: usize| format!("the disk sd{n} has 3 bad sectors");
        for _ in 0..2 {
            let notifications = Notifications::new(state.clone());
            add_notices(&notifications, &[problem(1), problem(2)]).await;
            let all = notifications.list("", &Reach::everything());
            assert_eq!(all.len(), 2);
            assert_eq!(all[1].value["level"], "error");
        }
        let notifications = Notifications::new(state);
        add_notices(&notifications, &(1..31).map(problem).collect::<Vec<_>>()).await;
        let all = notifications.list("", &Reach::everything());
        assert_eq!(all.len(), 2 + MAX_PROBLEMS + 1);
        let last = all[0].value["message"].as_str().unwrap();
        assert!(last.starts_with("18 more problems"), "{last}");
    }
}
