//! Users and groups, read from the target's passwd and group files: the static binary cannot use NSS.

use std::io;

use gatewren_base::sys::source::text;

/// The user database of this host.
const PASSWD: &str = "/etc/passwd";

/// One line of passwd(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Id of the primary group.
    pub gid: u32,
    /// Home directory.
    pub home: String,
}

/// Returns the id of a user of this host.
///
/// # Errors
/// Fails if the user does not exist; the error names what creates it.
pub fn uid_of(name: &str) -> io::Result<u32> {
    let known = account(&text(PASSWD).unwrap_or_default(), name);
    known.map(|account| account.uid).ok_or_else(|| {
        let words = format!(
            "user {name} not found in {PASSWD}; create it with systemd-sysusers, or name another"
        );
        io::Error::other(words)
    })
}

/// Returns all accounts.
pub fn accounts(passwd: &str) -> impl Iterator<Item = Account> {
    passwd.lines().filter_map(parse)
}

/// Returns the account with this name, or with this number if no name matches.
pub fn account(passwd: &str, user: &str) -> Option<Account> {
    let number = user.parse::<u32>().ok();
    let named = accounts(passwd).find(|account| account.name == user);
    named.or_else(|| accounts(passwd).find(|account| Some(account.uid) == number))
}

/// Returns the account's groups from the text of group(5), the primary group first.
pub fn groups(group: &str, account: &Account) -> Vec<u32> {
    let mut found = vec![account.gid];
    for line in group.lines() {
        let mut fields = line.split(':').skip(2);
        let gid = fields.next().and_then(|gid| gid.parse().ok());
        let member = fields
            .next()
            .is_some_and(|list| list.split(',').any(|name| name == account.name));
        found.extend(gid.filter(|gid| member && !found.contains(gid)));
    }
    found
}

fn parse(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    let home = fields.nth(1)?;
    Some(Account {
        name: name.to_owned(),
        uid,
        gid,
        home: if home.starts_with('/') { home } else { "/" }.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::accounts::*;

    const PASSWD: &str = "\
root:x:0:0:root:/root:/bin/sh
# a comment: no line of ours
broken:x:one:1::/:/bin/sh
+nis
app:x:1000:1001:App,,,:/home/app:/bin/sh
1000:x:5:5:named like a number:/five:/bin/sh
bare:x:7:7::
";

    #[test]
    fn names_go_before_numbers_and_broken_lines_are_passed_over() {
        let app = account(PASSWD, "app").unwrap();
        assert_eq!(
            (app.uid, app.gid, app.home.as_str()),
            (1000, 1001, "/home/app")
        );
        assert_eq!(account(PASSWD, "1000").unwrap().uid, 5);
        assert_eq!(account(PASSWD, "0").unwrap().name, "root");
        assert_eq!(account(PASSWD, "bare").unwrap().home, "/");
        for nobody in ["", "broken", "nis", "+nis", "#", "4294967296", "-1"] {
            assert_eq!(account(PASSWD, nobody), None, "{nobody}");
        }
    }

    #[test]
    fn all_groups_are_found_once() {
        let app = account(PASSWD, "app").unwrap();
        let group = "root:x:0:\nadm:x:4:syslog,app\nappgroup:x:1001:app\nx\ndisk:x:6:apple\n";
        assert_eq!(groups(group, &app), [1001, 4]);
    }
}
