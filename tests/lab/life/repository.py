#!/usr/bin/env python3
"""apt on a box without a network, and the repository of packaging/repository on a web server in the same box.

The states of the repository are folders in $PACKAGES: `one` has the older version, `two` the newer version too,
`both` is signed with the first and the second key, `new` with the second only, `strange` with an unknown key.
"""

import re
import shutil

from box import *  # noqa: F403
from site_of_packages import FILES, SITE, listen, only_this_source, serve

KEYRING = pathlib.Path("/usr/share/keyrings/gatewren-archive-keyring.asc")
# What gpgv says of a signature by an unknown key, in Debian 12, and what sqv says from Debian 13 on.
UNKNOWN = "NO_PUBKEY|Missing key"
# Any failure of a source ends the update with an error, not only one that leaves apt without lists.
STRICT = ["-o", "APT::Update::Error-Mode=any"]


def main():
    only_this_source()
    listen()
    installed()
    changed_on_the_way()
    upgraded()
    new_key()
    finish()


def candidate():
    return re.search(r"Candidate: (.*)", run("apt-cache", "policy", "gatewren"))[1]


def installed():
    serve("one")
    with check("the commands that packaging/repository prints install the package and its keys, and it serves"):
        words = (FILES / "words").read_text().splitlines()
        commands = [line.strip() for line in words if line.startswith("  ")]
        expect(len(commands) == 3, words)
        run("sh", "-ec", "\n".join(commands), env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        expect(version() == version_of("older"), version())
        wait_until_serving()
        code, said = run("dpkg", "-V", "gatewren-archive-keyring", ok=False)
        expect(str(KEYRING) not in said, said)


def refused(why, *command):
    code, said = apt(*command, ok=False)
    expect(code != 0, f"accepted: {said[-1500:]}")
    expect(re.search(why, said), f"refused for another reason: {said[-1500:]}")


def flip(path, find, put):
    """Changes bytes, not the size."""
    content = path.read_bytes()
    expect(find in content and len(find) == len(put), f"{path} has no {find}")
    path.write_bytes(content.replace(find, put, 1))


def lists():
    return [path for path in SITE.glob("dists/stable/main/binary-amd64/**/*") if path.is_file()]


def changed_on_the_way():
    older = version_of("older")
    with check("apt refuses an index whose signed text was changed, and goes on with the old one"):
        serve("two")
        flip(SITE / "dists/stable/InRelease", b"Label: gatewren", b"Label: gatewrem")
        refused("signatures were invalid|BADSIG|has been manipulated", "update", *STRICT)
        expect(candidate() == older, candidate())
    with check("apt refuses an index that an unknown key has signed"):
        serve("strange")
        refused(UNKNOWN, "update", *STRICT)
        expect(candidate() == older, candidate())
    with check("apt refuses a repository without a signature"):
        serve("two")
        (SITE / "dists/stable/InRelease").unlink()
        refused("is no longer signed|not signed|does not have a Release file", "update", *STRICT)
        expect(candidate() == older, candidate())
    with check("apt refuses a list of packages that was changed"):
        serve("two")
        for path in lists():
            content = path.read_bytes()
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        refused("Hash Sum mismatch", "update", *STRICT)
        expect(candidate() == older, candidate())
    with check("apt refuses a package that was changed, and installs nothing"):
        serve("two")
        apt("update", *STRICT)
        expect(candidate() == version_of("newer"), candidate())
        [package] = SITE.glob("pool/main/g/gatewren/*+after_amd64.deb")
        content = bytearray(package.read_bytes())
        content[len(content) // 2] ^= 1
        package.write_bytes(content)
        refused("Hash Sum mismatch", "upgrade")
        expect(version() == older and health() == 200, version())
    with check("without the key apt refuses the repository"):
        serve("two")
        keys = KEYRING.read_bytes()
        KEYRING.unlink()
        try:
            refused(f"{UNKNOWN}|Failed to parse keyring", "update", *STRICT)
        finally:
            KEYRING.write_bytes(keys)


def upgraded():
    serve("two")
    agent = add_agent("laptop", "observe")
    with check("apt upgrade brings the new version, and agents stay"):
        apt("update", *STRICT)
        apt("upgrade")
        expect(version() == version_of("newer"), version())
        wait_until_serving()
        call(agent["token"], "state_get")
    with check("the version before is still there, and apt goes back to it"):
        apt("install", "--allow-downgrades", f"gatewren={version_of('older')}")
        expect(version() == version_of("older"), version())
        wait_until_serving()
        call(agent["token"], "state_get")


def new_key():
    with check("a new key comes with the keyring package while both keys sign, and then the new one is enough"):
        serve("both")
        apt("update", *STRICT)
        apt("upgrade")
        expect(version() == version_of("newer"), version())
        serve("new")
        apt("update", *STRICT)
        expect(candidate() == version_of("newer"), candidate())
    with check("a box that slept through the change refuses the new key until it has the keyring"):
        keys = KEYRING.read_bytes()
        shutil.copy(FILES / "two/gatewren-archive-keyring.asc", KEYRING)
        try:
            refused(UNKNOWN, "update", *STRICT)
        finally:
            KEYRING.write_bytes(keys)
        apt("update", *STRICT)


main()
